// Looking only: what is asked then, and what is not even sent.

/** Questions that are asked by POST and change nothing. */
const QUESTIONS = [
  /^\/apis\/authentication\.k8s\.io\/v1\/selfsubjectreviews$/,
  /^\/apis\/authorization\.k8s\.io\/v1\/(self)?subject(access|rules)reviews$/,
  /^\/apis\/fairway\.dev\/v1alpha1\/fleets\/[^/]+\/whatif$/,
];
const READS = new Set(["get", "list", "watch"]);
/** What carries secrets is not for looking. */
const SECRET = new Set(["secrets", "works"]);

export function isLooking(method: string, path: string): boolean {
  if (method === "GET" || method === "HEAD") return true;
  return method === "POST" && QUESTIONS.some((one) => one.test(path));
}

/** The same by verb, as rights have it. */
export function isLookingBy(verb: string, resource: string, subresource: string): boolean {
  return (
    (READS.has(verb) && !SECRET.has(resource)) ||
    (verb === "create" && resource === "fleets" && subresource === "whatif")
  );
}
