// Share over time: two charts, a legend with the values under the cursor, and steps to pick.

import { h } from "./dom.js";
import { drawLegend } from "./legend.js";
import { span, time } from "./format.js";
import { pairsOf } from "./labels.js";
import { sharePlot, trafficPlot } from "./plots.js";
import { banded, largest, linesOf, windowOf } from "./series.js";
import { change } from "./state.js";

const parts = {};
let now = null; // lines, by, shown, window, index of the step under the cursor
let hidden = new Map(); // per view: groups a reader switched on or off
let built = "";

export function setUp(box) {
  parts.box = box;
  parts.legend = h("div", { class: "legend", role: "group", "aria-label": "Groups and their values" });
  parts.share = h("div", { class: "plot" });
  parts.traffic = h("div", { class: "plot" });
  parts.frame = h("div", {
    class: "plots", tabindex: "0", role: "group",
    "aria-label": "Chart. Left and right keys go from step to step, Enter shows its retrievals.",
    on: { keydown, click: pick },
  }, parts.share, h("p", { class: "small" }, "Retrievals"), parts.traffic);
  parts.said = h("p", { class: "sr", "aria-live": "polite" });
  parts.note = h("p", { class: "note" });
  parts.empty = h("p", { class: "nothing" });
  for (const part of [parts.empty, parts.legend, parts.frame, parts.note]) part.hidden = true;
  box.append(parts.empty, parts.legend, parts.frame, parts.note, parts.said);
  new ResizeObserver(() => { if (now && parts.share.clientWidth !== parts.width) build(); }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (now) build(); });
}

export function drawChart(series, view, overview) {
  const lines = series && linesOf(series);
  const filled = series !== null && lines.retrievals.some((n) => n);
  parts.empty.hidden = filled;
  for (const part of [parts.legend, parts.frame, parts.note]) part.hidden = !filled;
  if (!filled) {
    const { until } = overview.log;
    parts.empty.textContent = until === null
      ? "Nothing to draw yet: the chart begins with the first retrieval."
      : `Nothing was retrieved in this time${view.labels.length ? " with these labels" : ""}; the newest retrieval of the log is from ${time(until)}.`;
    now = null;
    return;
  }
  const shown = largest(lines);
  lines.groups.forEach((group, g) => {
    const wanted = hidden.get(JSON.stringify([view.by, group]));
    if (wanted !== undefined) wanted ? shown.add(g) : shown.delete(g);
  });
  const window = view.range === "all"
    ? [lines.at[0], lines.at.at(-1) + lines.step]
    : windowOf(lines, view.since, overview.generated_at);
  const fits = (alarm) => view.labels.every((pair) => pairsOf(alarm.labels).includes(pair));
  const shifts = (view.alarms ?? []).filter((alarm) => alarm.since >= window[0] && alarm.since <= window[1] && alarm.by === view.by && fits(alarm));
  now = { lines, by: view.by, measure: view.measure, shown, window, shifts, index: now?.index ?? null };
  const key = JSON.stringify([lines.groups, view.by, [...shown].sort()]);
  if (key !== built) { built = key; build(); } else {
    parts.plots[0].setData([lines.middles, ...lines.share]);
    parts.plots[1].setData([lines.middles, lines.retrievals]);
  }
  const level = Math.round(series.confidence_level * 1000) / 10;
  const few = lines.at.length === 1 ? "All of it lies in one step: lines need more time. " : "";
  parts.note.textContent = `${few}Each step is ${stepWords(lines.step)}. ${banded(shown) ? "Bands" : "Brackets"}: ${level}\u202f% interval of the step, as half-days vary. `
    + `${shifts.length ? "Upright: a shift begins. " : ""}`
    + `${lines.baseline.some((value) => value !== null) ? "Dashed: baseline. " : ""}Click a step for its retrievals.`;
  legend();
}

const stepWords = (seconds) => {
  for (const [size, unit] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    if (seconds % size === 0) return seconds === size ? `one ${unit}` : `${seconds / size} ${unit}s`;
  }
  return `${seconds} seconds`;
};

function build() {
  for (const plot of parts.plots ?? []) plot.destroy();
  parts.width = parts.share.clientWidth;
  parts.plots = [sharePlot(parts.share, () => now, moved), trafficPlot(parts.traffic, () => now)];
}

function moved(plot) {
  if (!now) return;
  now.index = plot.cursor.idx ?? null;
  legend();
}

function legend() {
  drawLegend(parts.legend, now, (g) => {
    hidden.set(JSON.stringify([now.by, now.lines.groups[g]]), !now.shown.has(g));
    now.shown.has(g) ? now.shown.delete(g) : now.shown.add(g);
    built = "";
    build();
    legend();
  });
}

function pick() {
  if (!now || now.index === null || !now.lines.retrievals[now.index]) return;
  const since = now.lines.at[now.index];
  change({ drill: { group: null, since, until: since + now.lines.step, first: false } });
}

function keydown(event) {
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!now || event.target !== parts.frame) return;
  if (event.key === "Enter") { pick(); return; }
  if (!move) return;
  event.preventDefault();
  const last = now.lines.at.length - 1;
  const index = now.index === null ? last : Math.min(last, Math.max(0, now.index + move));
  for (const plot of parts.plots) {
    plot.setCursor({ left: plot.valToPos(now.lines.middles[index], "x"), top: 10 });
  }
  parts.said.textContent = `${span(now.lines.at[index], now.lines.step)}: ${parts.legend.textContent}`;
}
