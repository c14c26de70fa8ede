// What differs between two texts, line by line.

export interface Line {
  sign: " " | "+" | "-";
  text: string;
}

const LINES_MAX = 1500;

/** The lines of both texts in order; those that only one has carry its sign. Too long: the later. */
export function differences(before: string, after: string): Line[] {
  const [old, young] = [before.split("\n"), after.split("\n")];
  if (old.length > LINES_MAX || young.length > LINES_MAX)
    return young.map((text) => ({ sign: " ", text }));
  // common[i][j]: how many lines old[i..] and young[j..] have in common, in order.
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(young.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = young.length - 1; j >= 0; j -= 1)
      common[i]![j] =
        old[i] === young[j]
          ? common[i + 1]![j + 1]! + 1
          : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
  const found: Line[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) {
      found.push({ sign: " ", text: young[j]! });
      i += 1;
      j += 1;
    } else if (j >= young.length || (i < old.length && common[i + 1]![j]! >= common[i]![j + 1]!)) {
      found.push({ sign: "-", text: old[i]! });
      i += 1;
    } else {
      found.push({ sign: "+", text: young[j]! });
      j += 1;
    }
  }
  return found;
}
