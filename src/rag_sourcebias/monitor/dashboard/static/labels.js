// Sets of labels: where retrievals happened.

export const pairsOf = (labels) => Object.entries(labels).map(([key, value]) => `${key}=${value}`);

export function whereOf(labels, alone = true) {
  const words = Object.entries(labels).map(([key, value]) => `${key} ${value}`);
  return words.join(", ") || (alone ? "all retrievals" : "without labels");
}

/** Snapshots that belong to the chosen labels: the most specific ones that do not contradict. */
export function chosen(snapshots, wanted) {
  if (!wanted.length) return snapshots;
  const fits = snapshots.filter((one) => pairsOf(one.labels).every((pair) => wanted.includes(pair)));
  const most = Math.max(0, ...fits.map((one) => pairsOf(one.labels).length));
  return fits.filter((one) => pairsOf(one.labels).length === most);
}
