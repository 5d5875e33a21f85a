// Groups now: shares since the start of the monitor, with what they are held against.

import { h, redraw } from "./dom.js";
import { count, interval, known, percent, plural, short } from "./format.js";
import { chosen, whereOf } from "./labels.js";
import { mark } from "./legend.js";
import { titleOf } from "./palette.js";
import { change } from "./state.js";

const RANKS = [[0, "1"], [2, "3"], [4, "10"]]; // places in GroupCount.ranks
const MOST_SETS = 50;
const at = (share) => `${(share * 100).toFixed(2)}%`;

function bar(share, look) {
  if (!known(share.share)) return null;
  return h("span", { class: `bar ${look}`, "aria-hidden": "true" },
    known(share.lower) ? h("span", { class: "range", css: { left: at(share.lower), width: at(share.upper - share.lower) } }) : null,
    h("span", { class: "dot", css: { left: at(share.share) } }),
    known(share.baseline) ? h("span", { class: "chance", css: { left: at(share.baseline) } }) : null);
}

function row(snapshot, share, columns) {
  const seen = snapshot.counts.find((one) => one.group === share.group);
  const square = mark(snapshot.by, share.group);
  const cell = (text, extra = {}) => h("td", { class: "num", ...extra }, text);
  const corrected = snapshot.corrected[share.group];
  return h("tr", { class: share.alarm ? "alarmed" : null },
    h("th", { scope: "row" }, h("button", {
      type: "button", class: "link", title: "Show retrievals with documents of this group",
      "data-key": `group:${JSON.stringify(snapshot.labels)}:${share.group}`,
      on: { click: () => change({ drill: { group: share.group, since: null, until: null, first: share.measure === "first" } }) },
    }, square, h("span", {}, titleOf(share.group)))),
    h("td", { class: "drawn" }, bar(share, square.className.replace("mark ", ""))),
    cell([h("strong", {}, percent(share.share)), ` ${interval(share.lower, share.upper)}`]),
    columns.corrected ? cell(percent(corrected)) : null,
    cell(share.baseline === null ? "not tested" : short(share.baseline), share.baseline === null ? { class: "num muted" } : {}),
    h("td", {}, share.alarm ? h("span", { class: "badge" }, "alarm") : null, share.baseline === null || share.alarm ? "" : ` ${Math.round(100 * share.statistic)}\u202f%`),
    cell(count(seen?.documents ?? 0)),
    RANKS.map(([place]) => cell(count(seen?.ranks[place] ?? 0))));
}

const help = (text, title) => h("abbr", { title }, text);

function head(columns) {
  const names = [
    "Group", "", "Share [interval]",
    columns.corrected ? help("Corrected", "Corrected for tag errors: with the sensitivity and specificity of the tagger") : null,
    "Baseline",
    help("Change", "How far a change is told already: an alarm comes at 100 %."),
    "Documents", ...RANKS.map(([, k]) => help(k === "1" ? "at 1" : `to ${k}`, `Documents at ranks up to ${k}`)),
  ];
  return h("thead", {}, h("tr", {}, names.filter((name) => name !== null).map((name, i) =>
    h("th", { scope: "col", class: name === "" ? "drawn" : i > 1 && name.textContent !== "Change" ? "num" : null }, name))));
}

/** Of two groups that are all there is, one says it all. */
function oneOfTwo(shares) {
  const there = shares.filter((share) => share.share > 0);
  if (there.length !== 2 || Math.abs(there[0].share + there[1].share - 1) > 1e-6) return shares;
  return [there.find((share) => share.group === "human") ?? there[0]];
}

export function drawTable(box, overview, view) {
  const all = overview.monitor.snapshots;
  const snapshots = chosen(all, view.labels).slice(0, MOST_SETS);
  const columns = { corrected: view.measure === "exposure" && snapshots.some((one) => Object.keys(one.corrected).length) };
  if (!all.length) {
    redraw(box, h("p", { class: "nothing" }, "The monitor has read no retrieval yet."));
    return;
  }
  if (!snapshots.length) {
    redraw(box, h("p", { class: "nothing" }, "The monitor does not watch these labels on their own; the chart shows them."));
    return;
  }
  const width = 9 + (columns.corrected ? 1 : 0);
  const bodies = snapshots.map((one) => {
    const all_of = one.groups.filter((share) => share.measure === view.measure);
    const shares = columns.corrected ? all_of : oneOfTwo(all_of);
    const facts = [plural(one.n_retrievals, "retrieval"), one.n_empty ? `${count(one.n_empty)} empty` : null,
      `${count(one.n_observations)} tested`,
      (one.watch?.n_level ?? null) === null ? null : `${count(one.watch.n_level)} at this level`,
      shares.length < all_of.length ? `the rest is ${titleOf(all_of.find((share) => share !== shares[0] && share.share > 0).group)}` : null].filter(Boolean).join(", ");
    return h("tbody", {},
      h("tr", { class: "group" }, h("th", { colspan: width, scope: "rowgroup" },
        h("div", {}, whereOf(one.labels, all.length === 1), h("span", { class: "muted" }, ` ${facts}`)))),
      shares.length ? shares.map((share) => row(one, share, columns))
        : h("tr", {}, h("td", { colspan: width, class: "muted" }, "The monitor does not watch this measure.")));
  });
  const by = overview.monitor.by;
  const note = by === view.by ? null : h("p", { class: "note" },
    `The monitor tests by ${by}: this table stays by ${by}, only the chart and the retrievals are by ${view.by}.`);
  redraw(box, note, h("div", { class: "scroll" }, h("table", { class: "main lined" },
    h("caption", {}, h("div", {}, `Shares since the monitor started, or the last change, and counts of all; not only in the time chosen above. Intervals: ${short(overview.monitor.confidence_level)}, from means of half-days.`
      + (columns.corrected ? " “Corrected”: corrected for tag errors." : ""))),
    head(columns), bodies)));
}
