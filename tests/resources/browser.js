// As much of a browser as the report's script asks for: elements that remember, and a pen that notes its words.
"use strict";

class Style {
  setProperty(name, value) { this[name] = value; }
}

class HTMLElement {
  constructor(tag = "", words = "") {
    Object.assign(this, {tag, nodeValue: words, children: [], attributes: {}, heard: {}, parent: null, hidden: false});
    this.style = new Style();
    const names = new Set();
    this.classList = {
      add: name => names.add(name), remove: name => names.delete(name), contains: name => names.has(name),
    };
  }
  get firstChild() { return this.children[0] || null; }
  get childNodes() { return this.children; }
  get textContent() { return this.nodeValue + this.children.map(each => each.textContent).join(""); }
  set textContent(words) { this.children = [new HTMLElement("", String(words))]; }
  get clientWidth() { return parseFloat(this.style.width) || WIDTH; }
  insertBefore(child, next) {
    child.parent = this;
    const at = next == null ? this.children.length : this.children.indexOf(next);
    this.children.splice(at < 0 ? this.children.length : at, 0, child);
    return child;
  }
  appendChild(child) { return this.insertBefore(child, null); }
  append(...children) { children.forEach(child => this.appendChild(child)); }
  remove() { if (this.parent) this.parent.children.splice(this.parent.children.indexOf(this), 1); }
  contains(other) { return this === other || this.children.some(child => child.contains(other)); }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(kind, hear) { (this.heard[kind] = this.heard[kind] || []).push(hear); }
  removeEventListener(kind, hear) { this.heard[kind] = (this.heard[kind] || []).filter(each => each !== hear); }
  dispatchEvent(event) { (this.heard[event.type] || []).slice().forEach(hear => hear(event)); }
  getBoundingClientRect() {
    const width = parseFloat(this.style.width) || WIDTH, height = parseFloat(this.style.height) || 260;
    return {left: 0, top: 0, width, height, right: width, bottom: height};
  }
  getContext() { return this.pen = this.pen || new Pen(); }
  all(name) {
    const own = this.classList.contains(name) ? [this] : [];
    return own.concat(...this.children.map(child => child.all(name)));
  }
}

class Pen {
  constructor() { this.said = []; this.strokes = []; }
  fillText(words) { this.said.push(String(words)); }
  measureText(words) { return {width: 6 * String(words).length}; }
  stroke() { this.strokes.push(this.strokeStyle); }
}
for (const name of ["arc", "beginPath", "clearRect", "clip", "closePath", "fill", "fillRect", "lineTo", "moveTo",
                    "rect", "restore", "rotate", "save", "scale", "setLineDash", "setTransform", "translate"])
  Pen.prototype[name] = function () {};

class Path2D {}
for (const name of ["addPath", "arc", "closePath", "lineTo", "moveTo", "rect"]) Path2D.prototype[name] = function () {};
class CustomEvent { constructor(type) { this.type = type; } }

const WIDTH = 600, jobs = [];
var devicePixelRatio = 1, onresize = null, queueMicrotask = job => jobs.push(job);
var requestAnimationFrame = queueMicrotask;
var Intl = {
  NumberFormat: function () { return {format: String}; },
  DateTimeFormat: function () { return {resolvedOptions: () => ({timeZone: "UTC"})}; },
};
var navigator = {language: "en-US"}, window = new HTMLElement("window"), document = new HTMLElement("document");
var scheme = new HTMLElement("scheme"), byId = {};
scheme.matches = false;
var matchMedia = words => words.includes("dark") ? scheme : new HTMLElement("media");
for (const id of ["curves", "plots", "smoothing"]) byId[id] = new HTMLElement(id);
byId.smoothing.hidden = true;
const slider = new HTMLElement("input");
document.createElement = tag => new HTMLElement(tag);
document.getElementById = id => byId[id];
document.querySelector = () => slider;

function settle() { while (jobs.length) jobs.shift()(); }

// Wraps the plotting library: the plots that are on the page, in order.
function watch() {
  const Real = uPlot;
  uPlot = function (options, data, box) { return box.plot = new Real(options, data, box); };
  uPlot.join = Real.join;
}
function plots() { return byId.plots.children.map(box => box.plot); }

function mouse(plot, kind, x) {
  const event = {type: kind, target: plot.over, button: 0, clientX: x, clientY: 50, movementX: 1, movementY: 1};
  event.preventDefault = event.stopPropagation = event.stopImmediatePropagation = () => {};
  (kind === "mouseup" ? document : plot.over).dispatchEvent(event);
  settle();
}

function drag(plot, begin, end) {
  mouse(plot, "mousemove", begin);
  mouse(plot, "mousedown", begin);
  mouse(plot, "mousemove", end);
  mouse(plot, "mouseup", end);
}

function click(element) { element.dispatchEvent({type: "click", target: element, button: 0, ctrlKey: false, metaKey: false}); settle(); }
function range(plot) { return [plot.scales.x.min, plot.scales.x.max]; }
function values(plot) { return plot.root.all("u-value").map(each => each.textContent); }
function names(plot) { return plot.root.all("u-label").map(each => each.textContent); }
