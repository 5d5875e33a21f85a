// The two charts over one another: shares with bands, and retrievals as bars. Global `uPlot`
// comes from vendor/.

import { GUTTER, band, level, mark, names, timeAxis, valueAxis } from "./chart-parts.js";
import { count, short } from "./format.js";
import { colour, lookOf, titleOf } from "./palette.js";
import { banded, rangeOf, runs } from "./series.js";

const SYNC = "time";
const MARKS = { shift: "shift", new: "new", gone: "gone", untagged: "untagged", level: "not as known", composition: "store changed", resolved: "back" };

/** Points that stand alone have no line: they are drawn as dots. */
function dots(plot, index) {
  const found = runs(plot.data[index].map((value) => value ?? null));
  return found.flatMap(([first, last]) => (first === last ? [first] : []));
}

const cursor = { sync: { key: SYNC, scales: ["x", null] }, drag: { x: false, y: false }, y: false };

export function sharePlot(box, now, onCursor) {
  const { lines, by } = now();
  const looks = lines.groups.map((group) => lookOf(by, group));
  const hues = looks.map((look) => colour(`g-${look.colour}`));
  const wide = box.clientWidth >= 560;
  const name = (g) => (wide ? cut(titleOf(lines.groups[g])) : looks[g].letter);
  return new uPlot({
    width: box.clientWidth,
    height: wide ? 320 : 250,
    padding: [10, wide ? 78 : 22, 0, 0],
    legend: { show: false },
    cursor: { ...cursor, points: { size: 8 } },
    scales: { x: { time: true, range: () => now().window }, y: { range: () => rangeOf(now().lines, now().shown) } },
    axes: [timeAxis(), valueAxis(short)],
    series: [{}, ...lines.groups.map((_, g) => ({
      show: now().shown.has(g),
      stroke: hues[g],
      width: 2,
      dash: looks[g].dash ?? undefined,
      points: { show: true, size: 6, filter: dots, fill: hues[g] },
    }))],
    hooks: {
      setCursor: [onCursor],
      drawAxes: [(plot) => {
        const { lines: current, shown } = now();
        const drawn = new Set();
        for (const alarm of now().shifts) mark(plot, alarm.since, MARKS[alarm.rule] ?? alarm.rule, colour(alarm.rule === "shift" ? "bad" : "muted"));
        if (banded(shown)) for (const g of shown) band(plot, current.middles, current.lower[g], current.upper[g], hues[g]);
        for (const g of shown) {
          const at = current.baseline[g];
          if (at === null) continue;
          // Two groups with one baseline, such as one half: one line, in no group's colour.
          const shared = [...shown].filter((other) => current.baseline[other] === at).length > 1;
          if (!drawn.has(at)) level(plot, at, shared ? colour("muted") : hues[g]);
          drawn.add(at);
        }
      }],
      draw: [(plot) => {
        const { lines: current, shown } = now();
        names(plot, [...shown].flatMap((g) => {
          const value = current.share[g].findLast((share) => share !== null);
          return value === undefined ? [] : [{ value, text: name(g), hue: hues[g] }];
        }));
      }],
    },
  }, [lines.middles, ...lines.share], box);
}

export function trafficPlot(box, now) {
  const { lines } = now();
  const wide = box.clientWidth >= 560;
  return new uPlot({
    width: box.clientWidth,
    height: 84,
    padding: [6, wide ? 78 : 22, 6, 0],
    legend: { show: false },
    cursor: { ...cursor, points: { show: false } },
    scales: {
      x: { time: true, range: () => now().window },
      y: { range: (_, __, most) => [0, Math.max(1, most ?? 1)] },
    },
    axes: [timeAxis(false), { ...valueAxis((n) => (Number.isInteger(n) ? compact(n) : ""), 26), size: GUTTER }],
    series: [{}, {
      fill: colour("bars"),
      width: 0,
      points: { show: false },
      paths: uPlot.paths.bars({ size: [0.9, 14], align: 0 }),
    }],
  }, [lines.middles, lines.retrievals], box);
}

const cut = (text) => (text.length > 11 ? `${text.slice(0, 10)}…` : text);
const compact = (n) => (n >= 1e6 ? `${n / 1e6}M` : n >= 1e4 ? `${n / 1e3}k` : count(n));
