"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const ALGORITHMS = ["ddpg", "td3", "tqc"];
const label = (key) => data.styles[key].label;
const sum = (values) => values.reduce((a, b) => a + b, 0);
const average = (values) => sum(values) / values.length;
const cellNamed = (name) => data.cells.find((cell) => cell.name === name);
const reproductions = data.reproductions.map(cellNamed);
const experiment = (cell) => (cell.env === "ebm-v1" ? "ebm-v1" : `${cell.env} a${cell.agents} ${cell.scheme}`);
const division = (cell) => (cell.env === "ebm-v1" ? "ebm-v1" : `${cell.env}, ${cell.agents} agents`);

/* Elements */

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

/* A mark of its own shape for each thing, so that no colour is needed to tell it. */
const SHAPES = { ddpg: "circle", td3: "square", tqc: "triangle", published: "diamond" };
function mark(shape, x, y, size, attributes) {
  const s = size;
  const path = {
    circle: `M${x - s},${y}a${s},${s} 0 1 0 ${2 * s},0a${s},${s} 0 1 0 ${-2 * s},0z`,
    square: `M${x - 0.9 * s},${y - 0.9 * s}h${1.8 * s}v${1.8 * s}h${-1.8 * s}z`,
    triangle: `M${x},${y - 1.1 * s}l${1.1 * s},${2 * s}h${-2.2 * s}z`,
    diamond: `M${x},${y - 1.2 * s}l${1.1 * s},${1.2 * s}l${-1.1 * s},${1.2 * s}l${-1.1 * s},${-1.2 * s}z`,
  }[shape];
  return svg("path", { d: path, ...attributes });
}

/* Entries: a line, or a mark if they have a shape. */
function legend(place, entries) {
  place.replaceChildren(...entries.map(({ label: text, colour, dash, width = 2, shape, hollow, dot }) => {
    const sample = svg("svg", { viewBox: "0 0 28 10", "aria-hidden": "true" });
    if (shape) sample.append(mark(shape, 14, 5, dot ? 2 : 4, { fill: hollow ? "var(--paper)" : colour, stroke: dot ? "none" : hollow ? colour : "var(--ink)" }));
    else sample.append(svg("line", { x1: 0, x2: 28, y1: 5, y2: 5, stroke: colour, "stroke-width": width, "stroke-dasharray": dash ?? "" }));
    return element("span", {}, sample, text);
  }));
}

/* Numbers */

const minus = (text) => text.replace("-", "−");
const fixed = (value, digits) => minus(value.toFixed(digits));
const latitude = (x) => `${Math.abs(x).toFixed(x % 1 ? 1 : 0)}°${x < 0 ? "S" : x > 0 ? "N" : ""}`;

function ticksBetween(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) ticks.push(t);
  return ticks;
}

function ticksOfDecades(low, high, count = 12) {
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    for (const m of [1, 2, 5]) if (m * 10 ** e >= low && m * 10 ** e <= high) ticks.push(Number((m * 10 ** e).toPrecision(3)));
  return ticks.length > count ? ticks.filter((t) => /^0?\.?0*1/.test(String(t))) : ticks;
}

/* What is pointed at: a mouse hovers; a finger taps, and the figures stay until it taps elsewhere. */
let pointed = null;  // the one place that tells its figures, and how to take leave of it
function onPointer(place, point, leave = () => {}) {
  const told = (event) => tell(place, () => point(event), leave);
  place.addEventListener("pointermove", told);
  place.addEventListener("pointerdown", told);
  place.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && pointed?.place === place) leavePointed();
  });
}

function tell(place, point, leave) {
  if (pointed?.place !== place) leavePointed();
  pointed = { place, leave };
  point();
}

function leavePointed() {
  pointed?.leave();
  pointed = null;
  byId("tooltip").hidden = true;
}

document.addEventListener("pointerdown", (event) => {
  if (!pointed?.place.contains(event.target)) leavePointed();
}, true);
addEventListener("scroll", leavePointed, { passive: true });  // what was pointed at is elsewhere now

function tooltip({ clientX, clientY }, title, rows) {
  const box = byId("tooltip");
  box.replaceChildren(element("b", {}, title), ...rows.map(([name, value]) =>
    element("div", {}, element("span", {}, name), element("span", {}, value))));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(clientX + 14, innerWidth - width - 4))}px`;
  box.style.top = `${Math.max(4, clientY + 18 + height > innerHeight ? clientY - height - 12 : clientY + 18)}px`;
}

/* Tables */

function makeTable(header, rows, groups = [], words = 1) {
  const head = element("thead");
  if (groups.length) head.append(element("tr", { class: "group" }, ...groups.map(([text, span]) => element("th", { colspan: span }, text))));
  head.append(element("tr", {}, ...header.map((text, i) => element("th", i && i < words ? { scope: "col", class: "word" } : { scope: "col" }, text))));
  const asCell = (value, i) => (value instanceof HTMLElement && value.tagName === "TD" ? value
    : i ? element("td", i < words ? { class: "word" } : {}, value) : element("th", { scope: "row" }, value));
  return element("table", {}, head, element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(asCell)))));
}

/* Files */

function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/* A drawing of this page with its colours written out, as a file of its own. */
function drawing(root, title) {
  const copy = root.cloneNode(true);
  const [, , width, height] = root.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const own = root.querySelectorAll("*"), copied = copy.querySelectorAll("*");
  own.forEach((one, i) => {
    const look = getComputedStyle(one);
    const names = one.tagName === "text" ? ["fill", "font-size", "font-weight"] : ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity"];
    for (const name of names) copied[i].setAttribute(name, look.getPropertyValue(name));
    if (look.visibility === "hidden") copied[i].setAttribute("visibility", "hidden");
    copied[i].removeAttribute("class");
  });
  copy.setAttribute("font-family", "sans-serif");
  copy.prepend(svg("title", {}, title), svg("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}

function offerDrawing(place, name, title) {
  const button = element("button", { type: "button", class: "svg", "aria-label": `${title}: save as SVG` }, "SVG");
  button.addEventListener("click", () => {
    const root = place.querySelector("svg");
    if (root) save(`${name}.svg`, drawing(root, title), "image/svg+xml");
  });
  return button;
}
