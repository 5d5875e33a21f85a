// One colour and one letter for each source or style, the same everywhere on the page. Colours
// are after Okabe and Ito, so that readers who are colour-blind can tell them apart; letters and
// dashes say the same again.

export const COLOURS = 8;
const FIRST = { human: 0, llm: 1 };
const SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const known = new Map();

/** Look and names of a group; told by its name, not by its place among others. */
export function lookOf(by, group) {
  const key = JSON.stringify([by, group]);
  if (!known.has(key)) known.set(key, newLook(by, group));
  return known.get(key);
}

function newLook(by, group) {
  const others = [...known].filter(([key]) => JSON.parse(key)[0] === by).map(([, look]) => look);
  const letter = group === "" ? "?" : freeLetter(group, new Set(others.map((look) => look.letter)));
  if (group === "" || group === "other") return { colour: "rest", letter, dash: group === "" ? [2, 3] : [8, 3] };
  const taken = new Set(others.map((look) => look.slot));
  let slot = Object.hasOwn(FIRST, group) ? FIRST[group] : Object.keys(FIRST).length;
  while (taken.has(slot)) slot += 1;
  return { slot, colour: String(slot % COLOURS), letter, dash: slot < COLOURS ? null : [6, 3] };
}

function freeLetter(group, taken) {
  const letters = [...group.toUpperCase()].filter((letter) => /[\p{L}\p{N}]/u.test(letter));
  return [...letters, ...SPARE].find((letter) => !taken.has(letter)) ?? letters[0] ?? "#";
}

/** What a reader calls the group. */
export const titleOf = (group) => (group === "" ? "untagged" : group);

/** Current value of a colour, for the canvas. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The same colour, see-through. */
export function faint(hex, alpha) {
  const parts = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${parts.join(", ")}, ${alpha})`;
}
