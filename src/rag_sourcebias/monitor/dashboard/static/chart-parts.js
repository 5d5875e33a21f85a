// What the charts share: axes, bands, reference lines and names, drawn on uPlot's canvas.

import { ticks } from "./format.js";
import { colour, faint } from "./palette.js";
import { runs } from "./series.js";

export const GUTTER = 54;
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

export function timeAxis(show = true) {
  return {
    show,
    stroke: colour("muted"),
    font: FONT,
    size: 40,
    gap: 6,
    space: 64,
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
    values: (_, splits, __, ___, step) => ticks(splits, step),
  };
}

export function valueAxis(values, space = 34) {
  return {
    stroke: colour("muted"),
    font: FONT,
    size: GUTTER,
    gap: 6,
    space,
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
    values: (_, splits) => splits.map(values),
  };
}

/** Fill between two rows; a point alone becomes an upright line. */
export function band(plot, x, lower, upper, hue) {
  const { ctx } = plot;
  const px = (i) => plot.valToPos(x[i], "x", true);
  const py = (value) => plot.valToPos(value, "y", true);
  clipped(plot, () => {
    ctx.fillStyle = ctx.strokeStyle = faint(hue, 0.17);
    for (const [first, last] of runs(lower.map((value, i) => (upper[i] === null ? null : value)))) {
      ctx.beginPath();
      if (first === last) {
        ctx.lineWidth = 4 * devicePixelRatio;
        ctx.moveTo(px(first), py(lower[first]));
        ctx.lineTo(px(first), py(upper[first]));
        ctx.stroke();
        continue;
      }
      for (let i = first; i <= last; i += 1) ctx.lineTo(px(i), py(upper[i]));
      for (let i = last; i >= first; i -= 1) ctx.lineTo(px(i), py(lower[i]));
      ctx.fill();
    }
  });
}

export function level(plot, value, hue) {
  const { ctx, bbox } = plot;
  const y = Math.round(plot.valToPos(value, "y", true));
  clipped(plot, () => {
    ctx.strokeStyle = hue;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([7, 5].map((n) => n * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  });
}

/** An upright line at a time, with a word beside its upper end. */
export function mark(plot, at, text, hue) {
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(at, "x", true));
  clipped(plot, () => {
    ctx.strokeStyle = ctx.fillStyle = hue;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = FONT.replace("12px", `600 ${12 * devicePixelRatio}px`);
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    ctx.fillText(text, x + 5 * devicePixelRatio, bbox.top + 4 * devicePixelRatio);
  });
}

/** Names at the right ends of lines, moved apart where they would overlap. */
export function names(plot, ends) {
  const { ctx, bbox } = plot;
  const high = 14 * devicePixelRatio;
  const placed = ends.map((end) => ({ ...end, y: plot.valToPos(end.value, "y", true) })).sort((a, b) => a.y - b.y);
  placed.forEach((end, i) => { if (i) end.y = Math.max(end.y, placed[i - 1].y + high); });
  const over = placed.length ? placed.at(-1).y - (bbox.top + bbox.height) : 0;
  if (over > 0) {
    placed.at(-1).y -= over;
    for (let i = placed.length - 2; i >= 0; i -= 1) placed[i].y = Math.min(placed[i].y, placed[i + 1].y - high);
  }
  ctx.save();
  ctx.font = FONT.replace("12px", `600 ${12 * devicePixelRatio}px`);
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const { text, y, hue } of placed) {
    ctx.fillStyle = hue;
    ctx.fillText(text, bbox.left + bbox.width + 6 * devicePixelRatio, y);
  }
  ctx.restore();
}

function clipped(plot, draw) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw();
  ctx.restore();
}
