// Relative Δ of the canary queries over rounds, with its confidence sequence.

import { band, level, timeAxis, valueAxis } from "./chart-parts.js";
import { h, redraw } from "./dom.js";
import { count, delta, known, plural, time } from "./format.js";
import { pairsOf, whereOf } from "./labels.js";
import { colour } from "./palette.js";

const MOST = 6;
const charts = new Map(); // by kind of canary: its box, chart and points

const kindOf = (point) => JSON.stringify([point.measure, point.human, point.llm, pairsOf(point.labels).sort()]);

function byKind(points) {
  const kinds = new Map();
  for (const point of points) {
    if (!kinds.has(kindOf(point))) kinds.set(kindOf(point), []);
    kinds.get(kindOf(point)).push(point);
  }
  return kinds;
}

/** How many kinds of canary stand in alarm. */
export const canaryAlarms = (points) =>
  [...byKind(points).values()].filter((rounds) => rounds.at(-1).alarm).length;

export function drawCanary(box, points) {
  const kinds = byKind(points);
  const drawn = [...kinds].slice(0, MOST);
  for (const [kind, chart] of charts) if (!drawn.some(([one]) => one === kind)) { chart.plot?.destroy(); chart.box.remove(); charts.delete(kind); }
  for (const [kind, rounds] of drawn) {
    if (!charts.has(kind)) {
      const chart = { box: h("figure", { class: "canary" }), said: h("figcaption"), area: h("div", { class: "plot" }) };
      chart.box.append(chart.said, chart.area);
      box.append(chart.box);
      new ResizeObserver(() => { if (chart.area.clientWidth !== chart.width) build(chart); }).observe(chart.box);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => build(chart));
      charts.set(kind, chart);
    }
    update(charts.get(kind), rounds);
  }
}

const row = (points, name) => points.map((point) => (known(point[name]) ? point[name] : null));

function update(chart, points) {
  const last = points.at(-1);
  const same = chart.points && chart.points.length === points.length && chart.points.at(-1).at === last.at;
  chart.points = points;
  const more = last.failed ? ` ${plural(last.failed, "query", "queries")} of the last round failed.` : "";
  redraw(chart.said,
    last.alarm ? [h("span", { class: "badge" }, "alarm"), " "] : null,
    `Relative Δ of ${last.measure}, ${last.human} against ${last.llm}${pairsOf(last.labels).length ? ` (${whereOf(last.labels)})` : ""}: `,
    h("strong", {}, `${delta(last.relative_delta)} [${delta(last.lower)}, ${delta(last.upper)}]`),
    ` after ${plural(points.length, "round")}, ${plural(last.n, "query", "queries")}; held against ${delta(last.reference, 0)}.`,
    h("span", { class: "note" }, ` Above 0: ${last.human} ranks higher. Line: all rounds so far, with its ${count(last.confidence_level * 100)}\u202f% confidence sequence; circles: each round. Latest ${time(last.at, "minute")}.${more}`));
  if (!same) build(chart);
}

function axisRange(points) {
  const values = ["lower", "upper", "round_relative_delta", "relative_delta", "reference"]
    .flatMap((name) => row(points.length > 3 ? points.slice(1) : points, name)).filter((value) => value !== null);
  const low = Math.max(-210, values.reduce((a, b) => Math.min(a, b), 0));
  const high = Math.min(210, values.reduce((a, b) => Math.max(a, b), 0));
  return [low - 5, high + 5];
}

function build(chart) {
  const { points } = chart;
  chart.plot?.destroy();
  chart.width = chart.area.clientWidth;
  if (!chart.width) { chart.plot = null; return; }
  const x = points.map((point) => point.at);
  const hue = colour("g-2");
  const air = Math.max(60, (x.at(-1) - x[0]) * 0.03);
  chart.plot = new uPlot({
    width: chart.width,
    height: 240,
    padding: [10, 22, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true, range: [x[0] - air, x.at(-1) + air] }, y: { range: axisRange(points) } },
    axes: [timeAxis(), valueAxis((value) => delta(value, 0))],
    series: [{},
      { stroke: hue, width: 2, points: { show: points.length < 3, size: 7, fill: hue } },
      { stroke: "transparent", points: { show: true, size: 6, stroke: colour("muted"), width: 1.5, fill: colour("paper") } }],
    hooks: { drawAxes: [(plot) => {
      band(plot, x, row(points, "lower"), row(points, "upper"), hue);
      level(plot, points.at(-1).reference, colour("ink"));
    }] },
  }, [x, row(points, "relative_delta"), row(points, "round_relative_delta")], chart.area);
}
