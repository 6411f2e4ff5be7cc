// The plots of a run's report: hover, drag to zoom, double-click to reset, a click on a name to hide a curve.
"use strict";
(() => {
  const told = JSON.parse(document.getElementById("curves").textContent);
  const place = document.getElementById("plots");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const HEIGHT = 260, plots = [];
  const reach = steps => steps.length ? [steps[0], steps[steps.length - 1]] : [];
  const ends = told.flatMap(({curves}) => curves.flatMap(({x, bad}) => [...reach(x), ...reach(bad.map(each => each[0]))]));
  const whole = {min: Math.min(...ends), max: Math.max(...ends)};
  if (whole.max === whole.min) whole.max += 1;
  let weight = 0, seen = whole;

  function colours() {
    return dark.matches
      ? {text: "#9aa4b5", line: "#363d4a", curves: ["#56b4e9", "#e69f00", "#2fd19f", "#e08fc0", "#f0e442", "#9ab8ff"]}
      : {text: "#5c6575", line: "#d5d9e0", curves: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#4f7fb8"]};
  }

  // As in the window: an exponential mean over the axis, not over the count, without a bias at its beginning.
  function smoothed(x, y) {
    if (!weight || x.length < 3) return y;
    const decay = -Math.log(weight) * (x.length - 1) / (x[x.length - 1] - x[0] || 1);
    let sum = 0, weights = 0;
    return y.map((value, at) => {
      const left = at ? Math.exp(-decay * (x[at] - x[at - 1])) : 0;
      sum = sum * left + value;
      weights = weights * left + 1;
      return sum / weights;
    });
  }

  function columns(panel) {
    return uPlot.join(panel.curves.map(curve => [curve.x, curve.byEpoch ? curve.y : smoothed(curve.x, curve.y)]));
  }

  function number(value) {
    return value == null ? "" : Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6 || !value
      ? String(+value.toPrecision(5)) : value.toExponential(3);
  }

  // As in the window: a cross at the lower edge for a NaN, a triangle at an edge for an infinity.
  function drawBad(plot, curves) {
    const {left, top, width, height} = plot.bbox, pen = plot.ctx, ink = colours(), r = 4 * devicePixelRatio;
    pen.save();
    pen.lineWidth = 2 * devicePixelRatio;
    curves.forEach((curve, at) => {
      if (!plot.series[at + 1].show) return;
      pen.strokeStyle = pen.fillStyle = ink.curves[curve.colour % ink.curves.length];
      for (const [step, kind] of curve.bad) {
        const x = plot.valToPos(step, "x", true);
        if (!(x >= left && x <= left + width)) continue;
        const y = kind === "up" ? top + r + 1 : top + height - r - 1, out = kind === "up" ? -r : r;
        pen.beginPath();
        if (kind === "NaN") {
          pen.moveTo(x - r, y - r);
          pen.lineTo(x + r, y + r);
          pen.moveTo(x - r, y + r);
          pen.lineTo(x + r, y - r);
          pen.stroke();
        } else {
          pen.moveTo(x, y + out);
          pen.lineTo(x - r, y - out / 2);
          pen.lineTo(x + r, y - out / 2);
          pen.fill();
        }
      }
    });
    pen.restore();
  }

  // Who came and went, over all curves.
  function drawTurns(plot, turns) {
    const {left, top, width, height} = plot.bbox, pen = plot.ctx;
    pen.save();
    pen.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    pen.strokeStyle = pen.fillStyle = colours().text;
    pen.setLineDash([4, 4]);
    let end = -Infinity, line = 0;
    for (const [step, words] of turns) {
      const x = plot.valToPos(step, "x", true);
      if (x < left || x > left + width) continue;
      pen.beginPath();
      pen.moveTo(x, top);
      pen.lineTo(x, top + height);
      pen.stroke();
      const wide = pen.measureText(words).width + 8, fits = x + wide < left + width;
      line = (fits ? x : x - wide) < end ? line + 1 : 0;  // words of the same moment stand below each other
      end = Math.max(end, fits ? x + wide : x);
      pen.textAlign = fits ? "left" : "right";
      pen.fillText(words, x + (fits ? 4 : -4), top + 12 * (line + 1) * devicePixelRatio);
    }
    pen.restore();
  }

  // All plots show the same steps; one whose metric begins later has room before it.
  function zoom({min, max}) {
    seen = {min, max};
    for (const {plot} of plots)
      if (plot && (plot.scales.x.min !== min || plot.scales.x.max !== max)) plot.setScale("x", seen);
  }

  function draw(slot) {
    const {panel, box, head} = slot, ink = colours(), before = slot.plot;
    const shown = before ? before.series.map(one => one.show) : [];
    const axis = {stroke: ink.text, grid: {stroke: ink.line, width: 1}, ticks: {stroke: ink.line, width: 1}};
    const options = {
      width: head.clientWidth, height: HEIGHT, padding: [null, 24, null, null],
      scales: {x: {time: false}, y: {distr: panel.log ? 3 : 1}},
      axes: [{...axis}, {...axis, size: 70, values: (_, ticks) => ticks.map(number)}],
      cursor: {sync: {key: "steps"}, drag: {x: true, y: false}, bind: {dblclick: () => () => zoom(whole)}},
      series: [
        {label: "step", value: (_, step) => step == null ? "last" : number(step)},
        ...panel.curves.map((curve, at) => ({
          label: curve.name, stroke: ink.curves[curve.colour % ink.curves.length], alpha: curve.faint ? 0.35 : 1,
          width: 2, dash: curve.dashed ? [6, 4] : [], spanGaps: true, show: shown[at + 1] ?? true,
          // Without the pointer the legend has the last values.
          value: (_, value, place, step) => step == null && curve.end || number(step == null ? curve.y[curve.y.length - 1] : value),
          points: {show: curve.x.length < 40, size: 5},
        })),
      ],
      hooks: {draw: [plot => drawBad(plot, panel.curves), plot => drawTurns(plot, panel.turns)], setScale: [(plot, key) => key === "x" && slot.plot === plot && zoom(plot.scales.x)]},
    };
    slot.plot = null;
    if (before) before.destroy();
    const plot = new uPlot(options, columns(panel), box);
    plot.setScale("x", seen);
    slot.plot = plot;
  }

  function button(words, name, pressed, press) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    made.setAttribute("aria-label", name);
    made.setAttribute("aria-pressed", pressed);
    made.onclick = () => made.setAttribute("aria-pressed", press());
    return made;
  }

  for (const panel of told) {
    const box = document.createElement("section"), head = document.createElement("h2");
    head.textContent = panel.title;
    const slot = {panel, box, head, plot: null};
    if (panel.positive)
      head.append(button("Log", `Logarithmic scale of ${panel.title}`, panel.log, () => {
        panel.log = !panel.log;
        draw(slot);
        return panel.log;
      }));
    box.append(head);
    place.append(box);
    plots.push(slot);
  }
  const redraw = () => plots.forEach(draw);
  redraw();
  document.getElementById("smoothing").hidden = false;
  document.querySelector("#smoothing input").oninput = event => {
    weight = Number(event.target.value);
    redraw();
  };
  dark.onchange = redraw;
  onresize = () => plots.forEach(({plot, head}) => plot.setSize({width: head.clientWidth, height: HEIGHT}));
})();
