// Kubernetes quantities as plain numbers, and numbers as short words.

const SUFFIXES: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
const SHAPE = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/;

export function amountOf(quantity: unknown): number {
  if (typeof quantity === "number") return quantity;
  const found = SHAPE.exec(String(quantity ?? "").trim());
  return found ? Number(found[1]) * (SUFFIXES[found[2] ?? ""] ?? 1) : 0;
}

// Made once: to make one takes a thousand times as long as to use it.
const WITH_COMMAS = new Intl.NumberFormat("en-US");

/** `12`, `1.5`, `20,480`. */
export function short(amount: number): string {
  const rounded = Math.abs(amount) >= 100 ? Math.round(amount) : Math.round(amount * 100) / 100;
  return Math.abs(rounded) < 1000 ? String(rounded) : WITH_COMMAS.format(rounded);
}

const BYTES = [
  ["Pi", 2 ** 50],
  ["Ti", 2 ** 40],
  ["Gi", 2 ** 30],
  ["Mi", 2 ** 20],
] as const;

export function ofResource(resource: string, amount: number): string {
  if (/memory|storage/.test(resource))
    for (const [suffix, size] of BYTES)
      if (amount >= size) return `${short(amount / size)} ${suffix}B`;
  return short(amount);
}

const ACCELERATOR =
  /\/(gpu|vgpu|tpu|npu|ppu|dcu|mlu|xpu|accelerator|neuroncore|gaudi|i915|xe|Ascend[0-9]+[A-Z]?|mig-[0-9]+g\.[0-9]+gb(\.[a-z]+)*)$/;

/** Whether a resource is an accelerator, as the hub counts them: memory of one, or a network, is none. */
export function isAccelerator(resource: string): boolean {
  return ACCELERATOR.test(resource);
}

export function acceleratorsOf(requests: Record<string, unknown> | undefined): number {
  let found = 0;
  for (const [resource, quantity] of Object.entries(requests ?? {}))
    if (isAccelerator(resource)) found += amountOf(quantity);
  return found;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${short(count)} ${count === 1 ? one : many}`;
}

const MONEY = new Map<string, (amount: number) => string>();

/** `$2.50`, `€2.50`; what is no currency of the world is a word behind the number. */
export function priceOf(amount: number, currency: string): string {
  const words = MONEY.get(currency) ?? wordsOfMoney(currency);
  MONEY.set(currency, words);
  return words(amount);
}

function wordsOfMoney(currency: string): (amount: number) => string {
  try {
    return new Intl.NumberFormat("en-US", {
      style: "currency",
      currency,
      minimumFractionDigits: 2,
      maximumFractionDigits: 2,
    }).format;
  } catch {
    return (amount) => `${amount.toFixed(2)} ${currency}`;
  }
}
