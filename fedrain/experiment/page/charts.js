"use strict";

/* Curves and maps as SVG and canvas, drawn again whenever their place changes its size. */

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function svg(tag, attributes = {}, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const minus = (text) => text.replace("-", "−");

/** A number with about three digits, as people write it. */
function told(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return minus(Math.round(value).toLocaleString("en").replaceAll(",", " "));
  return minus(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3));
}

/** An integer, such as the number of an episode. */
const counted = (value) => (Math.round(value) + 0).toLocaleString("en").replaceAll(",", " ");

const latitude = (x) => `${Math.abs(x)}°${x < 0 ? "S" : x > 0 ? "N" : ""}`;

function ticksBetween(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
  return ticks;
}

function ticksOfDecades(low, high) {
  const every = (factors) => {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
      for (const m of factors) if (m * 10 ** e >= low && m * 10 ** e <= high) ticks.push(m * 10 ** e);
    return ticks;
  };
  const few = every([1, 3]);
  return few.length > 3 ? few : every([1, 2, 5]);
}

const drawn = new Map(); // what each place shows
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) drawn.get(target)?.();
});

function keepDrawn(place, draw) {
  if (!drawn.has(place)) sizes.observe(place);
  drawn.set(place, draw);
  draw();
}

/**
 * Curves over a common axis.
 * series: [{x, y, colour, dash, width, opacity}]; lines: [{y, colour, dash}] across; marks: [x] on the axis.
 */
function showCurves(place, { series, lines = [], bounds = [], marks = [], x, y, log = false, flip = false,
  latitudes = false, xName = "", small = false, label }) {
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  keepDrawn(place, () => {
    const { width, height } = place.getBoundingClientRect();
    if (!width || !height) return;
    const ticks = log ? ticksOfDecades(...y) : ticksBetween(...y, height / (small ? 40 : 48));
    const step = log ? 1 : ticks.length > 1 ? ticks[1] - ticks[0] : 1;
    const places = log ? 0 : Math.min(6, Math.max(0, -Math.floor(Math.log10(step * 1.0001))));
    const texts = ticks.map((tick) => log ? told(tick) : minus(tick.toFixed(places)));
    const widest = Math.max(...texts.map((text) => text.length), 1);
    const box = { left: 10 + 6.4 * widest, right: width - 12, top: 8, bottom: height - (xName ? 36 : 22) };
    const scale = log ? Math.log : (v) => v;
    const [low, high] = y.map(scale);
    const toX = (v) => box.left + ((v - x[0]) / ((x[1] - x[0]) || 1)) * (box.right - box.left);
    const toY = (v) => {
      const part = Math.min(1.03, Math.max(-0.03, (scale(v) - low) / ((high - low) || 1)));
      return flip ? box.top + part * (box.bottom - box.top) : box.bottom - part * (box.bottom - box.top);
    };
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    ticks.forEach((tick, i) => {
      root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: toY(tick), y2: toY(tick) }));
      root.append(svg("text", { x: box.left - 6, y: toY(tick) + 4, "text-anchor": "end" }, texts[i]));
    });
    const across = latitudes
      ? (small ? [-90, 0, 90] : width < 480 ? [-90, -45, 0, 45, 90] : [-90, -60, -30, 0, 30, 60, 90])
      : ticksBetween(...x, (box.right - box.left) / 70).filter((v) => Number.isInteger(v));
    for (const tick of across) {
      const anchor = toX(tick) > box.right - 14 ? "end" : toX(tick) < box.left + 5 ? "start" : "middle";
      const text = latitudes ? latitude(tick) : counted(tick);
      root.append(svg("text", { x: toX(tick), y: box.bottom + 16, "text-anchor": anchor }, text));
    }
    if (xName) {
      const middle = (box.left + box.right) / 2;
      root.append(svg("text", { x: middle, y: height - 4, "text-anchor": "middle" }, xName));
    }
    for (const at of marks) {
      root.append(svg("line", { class: "average", x1: toX(at), x2: toX(at), y1: box.top, y2: box.bottom }));
    }
    for (const at of bounds) {
      root.append(svg("line", { class: "bound", x1: box.left, x2: box.right, y1: toY(at), y2: toY(at) }));
    }
    for (const { y: at, colour, dash = "" } of lines) {
      root.append(svg("line", { x1: box.left, x2: box.right, y1: toY(at), y2: toY(at), style: `stroke:${colour}`,
        "stroke-width": 1.8, "stroke-dasharray": dash }));
    }
    for (const one of series) root.append(curve(one, toX, toY, log));
    place.replaceChildren(root);
  });
}

/** A curve, with gaps where there is no number, and a dot where it is one point. */
function curve({ x, y, colour, dash = "", width = 1.6, opacity = 1 }, toX, toY, log) {
  let path = "", pen = "M";
  const shown = [];
  y.forEach((value, i) => {
    if (!isNumber(value) || (log && value <= 0)) { pen = "M"; return; }
    path += `${pen}${toX(x[i]).toFixed(1)} ${toY(value).toFixed(1)}`;
    pen = "L";
    shown.push(i);
  });
  const colours = `stroke:${colour};fill:none`;
  if (shown.length === 1) {
    return svg("circle", { cx: toX(x[shown[0]]), cy: toY(y[shown[0]]), r: 2.5, style: `fill:${colour}` });
  }
  return svg("path", { d: path || "M0 0", style: colours, "stroke-width": width, "stroke-dasharray": dash,
    "stroke-linejoin": "round", opacity });
}

/** Blue, white, red, as in all figures of errors. */
const STOPS = [[5, 48, 97], [33, 102, 172], [67, 147, 195], [146, 197, 222], [209, 229, 240], [247, 247, 247],
  [253, 219, 199], [244, 165, 130], [214, 96, 77], [178, 24, 43], [103, 0, 31]];

function errorColour(part) {
  const at = Math.min(1, Math.max(0, part)) * (STOPS.length - 1), i = Math.min(STOPS.length - 2, Math.floor(at));
  return STOPS[i].map((low, k) => Math.round(low + (STOPS[i + 1][k] - low) * (at - i)));
}

/** A map of errors, first row below, with ticks on both sides: [[share of the side, text]]. */
function showMap(place, { rows, columns, cells }, { xTicks, yTicks, xName = "", label }) {
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  const bytes = Uint8Array.from(atob(cells), (c) => c.charCodeAt(0));
  keepDrawn(place, () => {
    const { width, height } = place.getBoundingClientRect();
    if (!width || !height || bytes.length < rows * columns) return;
    const picture = element("canvas", { width: columns, height: rows });
    const pen = picture.getContext("2d"), image = pen.createImageData(columns, rows);
    for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) {
      const value = bytes[r * columns + c];
      if (value) image.data.set([...errorColour((value - 1) / 254), 255], 4 * ((rows - 1 - r) * columns + c));
    }
    pen.putImageData(image, 0, 0);
    const box = { left: 48, right: width - 12, top: 8, bottom: height - (xName ? 36 : 22) };
    const ratio = window.devicePixelRatio || 1;
    const canvas = element("canvas", { width: width * ratio, height: height * ratio });
    const brush = canvas.getContext("2d");
    brush.imageSmoothingEnabled = false;
    brush.drawImage(picture, box.left * ratio, box.top * ratio, (box.right - box.left) * ratio,
      (box.bottom - box.top) * ratio);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    for (const [at, text] of yTicks) {
      const y = box.bottom - at * (box.bottom - box.top);
      root.append(svg("text", { x: box.left - 6, y: y + 4, "text-anchor": "end" }, text));
    }
    for (const [at, text] of xTicks) {
      const x = box.left + at * (box.right - box.left);
      const anchor = at > 0.97 ? "end" : at < 0.02 ? "start" : "middle";
      root.append(svg("text", { x, y: box.bottom + 16, "text-anchor": anchor }, text));
    }
    if (xName) {
      const middle = (box.left + box.right) / 2;
      root.append(svg("text", { x: middle, y: height - 4, "text-anchor": "middle" }, xName));
    }
    place.replaceChildren(canvas, root);
  });
}

function legend(place, entries) {
  place.replaceChildren(...entries.map(({ label, colour, dash = "", width = 2 }) => {
    const sample = svg("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" });
    sample.append(svg("line", { x1: 0, x2: 26, y1: 4, y2: 4, style: `stroke:${colour}`, "stroke-width": width,
      "stroke-dasharray": dash }));
    return element("span", {}, sample, label);
  }));
}
