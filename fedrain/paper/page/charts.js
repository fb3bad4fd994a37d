/* Axes: numbers to a share of their length. */
const SCALES = {
  linear: (v) => v,
  log: Math.log,
  root: (v) => Math.sign(v) * Math.sqrt(Math.abs(v)),  // near nothing and far from it in one figure
};

function ticksOf(kind, [low, high], count) {
  if (kind === "log") return ticksOfDecades(low, high, count + 4);
  if (kind === "root") return [-50, -30, -15, -5, -1, 0, 1, 5, 15, 30, 50].filter((t) => t >= low && t <= high);
  return ticksBetween(low, high, count);
}

/* Curves over a common x, with a cross-hair that tells the figures. */
class Chart {
  constructor(place, { x, xTicks, xName, yRange, scale = "linear", flip = false, digits = 1, unit = "", file }) {
    Object.assign(this, { place, x, xTicks, xName, yRange, scale, flip, digits, unit, series: [], levels: [] });
    const caption = place.previousElementSibling;
    this.title = caption.textContent.trim();
    caption.append(" ", offerDrawing(place, file, this.title));
    place.setAttribute("role", "img");
    place.setAttribute("tabindex", "0");
    onPointer(place, (event) => this.point(event), () => this.leave());
    place.addEventListener("keydown", (event) => this.step(event));
    place.addEventListener("blur", () => { if (pointed?.place === place) leavePointed(); });
    new ResizeObserver(() => this.draw()).observe(place);
  }

  show(series, levels = []) {
    this.series = series;
    this.levels = levels;
    const told = series.filter((s) => s.label).map((s) => `${s.label} from ${this.number(Math.min(...s.values))} to ${this.number(Math.max(...s.values))}`);
    this.place.setAttribute("aria-label", `${this.title}. ${told.join("; ")}. Arrow keys tell the figures.`);
    this.draw();
  }

  number(value) {
    return `${this.scale === "log" ? Math.round(value).toLocaleString("en") : fixed(value, this.digits)}${this.unit ? ` ${this.unit}` : ""}`;
  }

  draw() {
    const { width, height } = this.place.getBoundingClientRect();
    if (!width || !this.series.length) return;
    const box = { left: this.scale === "log" ? 58 : 46, right: width - 14, top: 8, bottom: height - 22 };
    const scale = SCALES[this.scale];
    const [low, high] = this.yRange.map(scale);
    const [x0, x1] = [this.x[0], this.x[this.x.length - 1]];
    this.toX = (v) => box.left + ((v - x0) / (x1 - x0)) * (box.right - box.left);
    this.toY = (v) => {
      const part = Math.min(1.02, Math.max(-0.02, (scale(v) - low) / (high - low)));
      return this.flip ? box.top + part * (box.bottom - box.top) : box.bottom - part * (box.bottom - box.top);
    };
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    const ticks = ticksOf(this.scale, this.yRange, height / 34);
    const places = this.scale === "linear" ? Math.max(0, -Math.floor(Math.log10((ticks[1] - ticks[0]) * 1.0001))) : 0;
    for (const tick of ticks) {
      const y = this.toY(tick);
      root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: y, y2: y }));
      const text = this.scale === "log" ? tick.toLocaleString("en") : fixed(tick, places);
      root.append(svg("text", { x: box.left - 5, y: y + 4, "text-anchor": "end" }, text));
    }
    for (const [value, text] of this.xTicks) {
      root.append(svg("text", { x: this.toX(value), y: height - 6, "text-anchor": "middle" }, text));
    }
    for (const { value, colour, dash } of this.levels) {
      const y = this.toY(value);
      root.append(svg("line", { x1: box.left, x2: box.right, y1: y, y2: y, stroke: colour, "stroke-width": 1.6, "stroke-dasharray": dash }));
    }
    const line = (values) => Array.from(values, (v, i) => `${this.toX(this.x[i]).toFixed(1)},${this.toY(v).toFixed(1)}`).join(" ");
    for (const { values, half, each = [], colour, dash, width: stroke } of this.series) {
      if (half) {
        const low = values.map((v, i) => (this.scale === "log" ? Math.max(v - half[i], 1) : v - half[i])).reverse();
        const there = values.map((v, i) => `${this.toX(this.x[i])},${this.toY(v + half[i])}`);
        const back = low.map((v, i) => `${this.toX(this.x[values.length - 1 - i])},${this.toY(v)}`);
        root.append(svg("polygon", { points: there.concat(back).join(" "), fill: colour, opacity: 0.18 }));
      }
      for (const one of each) root.append(svg("path", { class: "seed", d: `M${line(one).replaceAll(" ", "L")}`, fill: "none", stroke: colour, "stroke-width": 0.8, opacity: 0.45 }));
      root.append(svg("polyline", { points: line(values), fill: "none", stroke: colour, "stroke-width": stroke, "stroke-dasharray": dash ?? "", "stroke-linejoin": "round" }));
    }
    if (this.now !== undefined) {
      const x = this.toX(this.now);
      root.append(svg("line", { class: "cross", x1: x, x2: x, y1: box.top, y2: box.bottom }));
    }
    this.cross = svg("line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
    root.append(this.cross);
    this.place.replaceChildren(root);
    if (this.pointer) this.point(this.pointer);
  }

  step(event) {
    if (event.key === "Escape") leavePointed();
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || !this.toX) return;
    event.preventDefault();
    const last = this.x.length - 1;
    const now = this.at === undefined ? (by > 0 ? -1 : last + 1) : this.at;
    const { left, top } = this.place.getBoundingClientRect();
    const x = this.toX(this.x[Math.min(last, Math.max(0, now + by))]);
    tell(this.place, () => this.point({ clientX: left + x, clientY: top }), () => this.leave());
  }

  point(event) {
    if (!this.toX) return;
    const at = event.clientX - this.place.getBoundingClientRect().left;
    let nearest = 0;
    this.x.forEach((value, i) => {
      if (Math.abs(this.toX(value) - at) < Math.abs(this.toX(this.x[nearest]) - at)) nearest = i;
    });
    this.at = nearest;
    this.pointer = { clientX: event.clientX, clientY: event.clientY };
    const x = this.toX(this.x[nearest]);
    this.cross.setAttribute("x1", x);
    this.cross.setAttribute("x2", x);
    this.cross.setAttribute("visibility", "visible");
    tooltip(this.pointer, this.xName(this.x[nearest]), [
      ...this.series.map(({ label: name, values }) => [name, this.number(values[nearest])]),
      ...this.levels.map(({ label: name, value }) => [name, this.number(value)]),
    ]);
  }

  leave() {
    this.pointer = null;
    this.cross?.setAttribute("visibility", "hidden");
  }
}

/* Rows of dots: every seed, a mean and its interval, and lines that all rows have in common. A row leads to its cell. */
function rowsFigure(place, { title, file, groups, range, scale = "linear", lines = [], unit = "K", rowHeight = 20, left = 62, heading }) {
  const chart = element("div", { class: "rows", role: "img", tabindex: "0" });
  const caption = element("figcaption", {}, heading ?? title, " ", offerDrawing(chart, file, title));
  place.append(element("figure", {}, caption, chart));
  const rows = groups.flatMap((group) => group.rows);
  const marks = rows.flatMap((row) => row.marks.map((one) => ({ ...one, row })));
  chart.setAttribute("aria-label", `${title}. ${marks.filter((m) => m.seeds).map((m) => `${m.name}: ${m.mean.toFixed(2)} ${unit}`).join("; ")}. `
    + "Arrow keys tell the figures, and the return key shows the cell.");
  const HEAD = groups.some((g) => g.title) ? 20 : 4;
  const height = sum(groups.map((g) => HEAD + g.rows.length * rowHeight)) + 30;
  chart.style.height = `${height}px`;
  const to = SCALES[scale], [low, high] = range.map(to);
  let at = -1, spots = [], cursor;
  const row = (i) => marks.filter((m) => m.row === rows[i]);
  const point = (i, event) => {
    at = i;
    cursor?.setAttribute("visibility", "visible");
    cursor?.setAttribute("y", spots[i] - rowHeight / 2);
    tooltip(event, rows[i].title, [...row(i).map((m) => [m.name, `${fixed(m.mean, 2)}${m.half ? ` ± ${m.half.toFixed(2)}` : ""} ${unit}`]),
      ...lines.map((l) => [l.label, `${l.value.toFixed(2)} ${unit}`])]);
  };
  const leave = () => cursor?.setAttribute("visibility", "hidden");
  const nearest = (event) => {
    const y = event.clientY - chart.getBoundingClientRect().top;
    return spots.reduce((best, spot, i) => (Math.abs(spot - y) < Math.abs(spots[best] - y) ? i : best), 0);
  };
  const draw = () => {
    const width = chart.getBoundingClientRect().width;
    if (!width) return;
    const right = width - 12;
    const toX = (v) => left + (Math.min(1.01, Math.max(-0.01, (to(v) - low) / (high - low)))) * (right - left);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    for (const tick of ticksOf(scale, range, (right - left) / 60)) {
      root.append(svg("line", { class: "axis", x1: toX(tick), x2: toX(tick), y1: 0, y2: height - 24 }));
      root.append(svg("text", { x: toX(tick), y: height - 10, "text-anchor": "middle" }, String(tick)));
    }
    cursor = svg("rect", { class: "cursor", x: 0, width, y: 0, height: rowHeight, visibility: "hidden" });
    root.append(cursor);
    for (const { value, colour, dash } of lines)
      root.append(svg("line", { x1: toX(value), x2: toX(value), y1: 0, y2: height - 24, stroke: colour, "stroke-width": 1.6, "stroke-dasharray": dash }));
    let y = 0;
    spots = [];
    for (const group of groups) {
      if (group.title) root.append(svg("text", { class: "head", x: 0, y: y + 14 }, group.title));
      y += HEAD;
      for (const one of group.rows) {
        const middle = y + rowHeight / 2;
        spots.push(middle);
        root.append(svg("text", { x: 8, y: middle + 4 }, one.label));
        const shown = marks.filter((m) => m.row === one);
        const beside = shown.filter((m) => m.seeds).length;
        shown.forEach((m, i) => {
          const own = beside > 1 && m.seeds ? middle + (i - (beside - 1) / 2) * (rowHeight / (beside + 0.4)) : middle;
          for (const seed of m.seeds ?? []) root.append(svg("circle", { class: "seed", cx: toX(seed), cy: own, r: 2, fill: m.colour, opacity: 0.55 }));
          if (m.half) root.append(svg("line", { x1: toX(Math.max(m.mean - m.half, scale === "log" ? range[0] / 2 : -1e9)), x2: toX(m.mean + m.half), y1: own, y2: own, stroke: m.colour, "stroke-width": 2 }));
          root.append(mark(m.shape ?? "circle", toX(m.mean), own, m.seeds ? 4.2 : 3.8, { fill: m.hollow ? "var(--paper)" : m.colour, stroke: m.hollow ? m.colour : "var(--ink)", "stroke-width": m.hollow ? 2 : 0.8 }));
        });
        y += rowHeight;
      }
    }
    chart.replaceChildren(root);
  };
  onPointer(chart, (event) => point(nearest(event), event), leave);
  const open = (i) => { if (rows[i]?.cell) openCell(rows[i].cell); };
  chart.addEventListener("click", (event) => { if (event.detail) open(nearest(event)); });
  chart.addEventListener("blur", () => { if (pointed?.place === chart) leavePointed(); });
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leavePointed();
    if (event.key === "Enter" && at >= 0) open(at);
    const by = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const next = Math.min(rows.length - 1, Math.max(0, at + by));
    const box = chart.getBoundingClientRect();
    tell(chart, () => point(next, { clientX: box.left + left, clientY: box.top + spots[next] }), leave);
  });
  new ResizeObserver(draw).observe(chart);
  return chart;
}
