// The planner's page: numbers that Python exported (docs/tools/planner.py), looked up, and drawn where inputs change.
"use strict";

/* ---------------------------------------------------------------- the table */

// A surface is a tree of pieces. A piece has corners [[at low epsilon], [at high epsilon]], each of low and high size.
function grown(numbers, epsilons, sizes) {
  let next = 4;
  const grow = (a, b, low, high, corners) => {
    const how = numbers[next++];
    if (how === 0) return { a, b, low, high, corners };
    const above = [numbers[next++], numbers[next++]];
    if (how === 1) {
      const x = (a + b) / 2;
      const row = [0, 1].map((k) => Math.floor((corners[0][k] + corners[1][k]) / 2) + above[k]);
      return { x, one: grow(a, x, low, high, [corners[0], row]), two: grow(x, b, low, high, [row, corners[1]]) };
    }
    const size = Math.min(Math.max(Math.round(Math.sqrt(low * high)), low + 1), high - 1);
    const column = [0, 1].map((k) => Math.floor((corners[k][0] + corners[k][1]) / 2) + above[k]);
    return {
      size,
      one: grow(a, b, low, size, [0, 1].map((k) => [corners[k][0], column[k]])),
      two: grow(a, b, size, high, [0, 1].map((k) => [column[k], corners[k][1]])),
    };
  };
  const corners = [numbers.slice(0, 2), numbers.slice(2, 4)];
  return grow(Math.log(epsilons[0]), Math.log(epsilons[1]), sizes[0], sizes[1], corners);
}

// The number of a surface at an epsilon and a size.
function valueOf(tree, epsilon, size, unit) {
  const x = Math.log(epsilon);
  let piece = tree;
  while (!piece.corners) piece = (piece.x !== undefined ? x <= piece.x : size <= piece.size) ? piece.one : piece.two;
  const { a, b, low, high, corners } = piece;
  const s = (x - a) / (b - a), t = high > low ? Math.log(size / low) / Math.log(high / low) : 0;
  const rows = corners.map(([left, right]) => left + (right - left) * t);
  return Math.exp(unit * (rows[0] + (rows[1] - rows[0]) * s));
}

// A planner answers as `plan` (kind "categories") and `plan_mean` (kind "means") do.
class Planner {
  constructor(table) {
    this.table = table;
    this.trees = new Map();
  }

  names(kind, size) {
    return Object.keys(this.table[kind]).filter((name) => size <= this.table[kind][name].sizes[1]);
  }

  // One number of one mechanism: the error of one user, its worst, the share of reports behind a value, or bits.
  number(kind, name, what, epsilon, size) {
    const law = this.table[kind][name], key = `${kind} ${name} ${what}`;
    if (!law[what]) return undefined;
    if (!this.trees.has(key)) this.trees.set(key, grown(law[what], this.table.epsilons, law.sizes));
    return valueOf(this.trees.get(key), epsilon, size, this.table.unit);
  }

  // A row for each mechanism, the least error first, as Python sorts them.
  rows({ kind, users, epsilon, size, level }) {
    const z = furthest(level, size);
    const rows = this.names(kind, size).map((name) => {
      const [unit, worst, share, bits] = ["error", "worst", "share", "bits"]
        .map((what) => this.number(kind, name, what, epsilon, size));
      // where few reports support a value their number has a longer tail than the normal law, which is planned with
      const few = share !== undefined && users * share <= 10000;
      return { name, rmse: unit / Math.sqrt(users), most: z * (worst || unit) / Math.sqrt(users), few, bits };
    });
    return rows.sort((one, two) => one.rmse - two.rmse || (one.bits || 0) - (two.bits || 0));
  }

  least(kind, epsilon, size, users) {
    return Math.min(...this.names(kind, size).map((name) => this.number(kind, name, "error", epsilon, size)))
      / Math.sqrt(users);
  }

  // The fewest users with which a mechanism keeps the error.
  users(kind, epsilon, size, target) {
    return Math.max(1, Math.ceil((this.least(kind, epsilon, size, 1) / target) ** 2));
  }

  // The least epsilon, of three digits, with which one keeps it; undefined where none of the table does.
  epsilon(kind, users, size, target) {
    const [least, most] = this.table.epsilons;
    const keeps = (epsilon) => this.least(kind, epsilon, size, users) <= target;
    if (!keeps(most) || keeps(least)) return keeps(least) ? least : undefined;
    let [low, high] = [least, most];
    while (high / low > 1.00001) {
      const x = Math.sqrt(low * high);
      if (keeps(x)) high = x; else low = x;
    }
    return Math.min(most, Number(high.toPrecision(3)));
  }
}

// How many standard errors the furthest of so many estimates keeps within, with this probability (Sidak).
function furthest(level, count) {
  return -normalQuantile(-Math.expm1(Math.log(level) / count) / 2);
}

// The standard normal quantile of a small probability: Newton's steps on the tail.
function normalQuantile(p) {
  let x = -Math.sqrt(Math.max(0, -2 * Math.log(2 * p)));
  for (let k = 0; k < 60; k++) {
    const density = Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI), tail = lowerTail(x);
    const step = (Math.log(tail) - Math.log(p)) * tail / density;
    x -= step;
    if (Math.abs(step) < 1e-12) break;
  }
  return x;
}

// The standard normal distribution below zero: a series near it, and a continued fraction far from it.
function lowerTail(x) {
  const y = -x, density = Math.exp(-y * y / 2) / Math.sqrt(2 * Math.PI);
  if (y < 3) {
    let term = y, sum = y;
    for (let k = 1; k < 80; k++) sum += term *= y * y / (2 * k + 1);
    return 0.5 - density * sum;
  }
  let fraction = 0;
  for (let k = 60; k > 0; k--) fraction = k / (y + fraction);
  return density / (y + fraction);
}

/* ---------------------------------------------------------------- the page */

const USERS = [10, 1e9];
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
const DASHES = ["", "9 4", "2 3", "9 3 2 3"];

// Numbers of three digits; shares are in hundredths.
const digits = (number) => number.toLocaleString("en", { maximumSignificantDigits: 3 });
const percent = (share) => digits(100 * share);
const short = (name) => name.replace(/FrequencyEstimator$|Transformer$/, "");

function start(root, table) {
  const planner = new Planner(table);
  const field = (name) => root.querySelector(`[name="${name}"]`);
  const shown = (name) => root.querySelector(`[data-shown="${name}"]`);

  // A slider moves in logarithms; the box beside it holds the number. Either may be moved.
  for (const slider of root.querySelectorAll("[data-slides]")) {
    const box = field(slider.dataset.slides);
    const set = () => { slider.value = 1000 * Math.log(box.value / box.min) / Math.log(box.max / box.min); };
    slider.addEventListener("input", () => {
      const value = box.min * (box.max / box.min) ** (slider.value / 1000);
      box.value = box.step === "1" ? Math.round(Number(value.toPrecision(2))) : Number(value.toPrecision(2));
      answer();
    });
    box.addEventListener("input", set);
    box.moved = set;
  }
  root.addEventListener("input", (event) => { if (!event.target.dataset.slides) answer(); });

  // What is asked, or the sentence that says which number does not fit.
  function asked() {
    const kind = field("kind").value, find = field("find").value, question = { kind, find };
    const box = field(kind === "means" ? "columns" : "categories");
    const names = { users: "users", epsilon: "epsilon", level: "probability", target: "error" };
    for (const [name, input] of [["size", box], ...Object.keys(names).map((name) => [name, field(name)])]) {
      if (name === find || (name === "target" && find === "error")) continue;
      const value = Number(input.value), whole = input.step === "1";
      const fits = input.value !== "" && value >= Number(input.min) && value <= Number(input.max)
        && (!whole || Number.isInteger(value));
      input.setAttribute("aria-invalid", String(!fits));
      if (!fits) {
        const what = name === "size" ? (kind === "means" ? "columns" : "categories") : names[name];
        const range = `from ${Number(input.min).toLocaleString("en")} to ${Number(input.max).toLocaleString("en")}`;
        return { wrong: `Give ${whole ? "a whole number" : "a number"} ${range} for ${what}.` };
      }
      question[name] = name === "level" || name === "target" ? value / 100 : value;
    }
    return question;
  }

  // Find what is left out.
  function solved(question) {
    const { kind, find, size, target } = question;
    if (find === "users") {
      question.users = planner.users(kind, question.epsilon, size, target);
      if (question.users > 2 ** 53) return { wrong: "No number of users has an error as small: give a larger one." };
    } else if (find === "epsilon") {
      question.epsilon = planner.epsilon(kind, question.users, size, target);
      if (question.epsilon === undefined) {
        return { wrong: `With ${question.users.toLocaleString("en")} users the error is larger at each epsilon up to `
          + `${table.epsilons[1]}: give a larger error, or more users.` };
      }
    }
    return question;
  }

  function answer() {
    const kind = field("kind").value, find = field("find").value;
    for (const part of root.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind);
    for (const part of root.querySelectorAll("[data-given]")) part.hidden = part.dataset.given === find;
    shown("target-box").hidden = find === "error";
    let question = asked();
    if (!question.wrong) question = solved(question);
    shown("result").hidden = Boolean(question.wrong);
    shown("wrong").hidden = !question.wrong;
    shown("wrong").textContent = question.wrong || "";
    if (question.wrong) return;
    for (const name of ["users", "epsilon"]) {
      if (name === find) { field(name).value = question[name]; field(name).moved(); }
    }
    const rows = planner.rows(question), best = rows[0], picked = field("mechanism").value;
    offer(rows);
    const row = rows.find(({ name }) => name === picked) || best;
    tell(question, row, best);
    list(question, rows, row);
    draw(question, rows, row);
    root.dataset.answered = JSON.stringify({ ...question, mechanism: row.name, rmse: row.rmse, most: row.most });
  }

  // The mechanisms that there are for this question; what was picked stays picked while it is one of them.
  function offer(rows) {
    const select = field("mechanism"), picked = select.value;
    const names = rows.map(({ name }) => name).sort();
    if (names.join() === select.dataset.names) return;
    select.dataset.names = names.join();
    const options = names.map((name) => new Option(name, name));
    select.replaceChildren(new Option("the one of the least error", ""), ...options);
    select.value = names.includes(picked) ? picked : "";
  }

  function tell(question, row, best) {
    const { kind, find, users, epsilon, size, level } = question, means = kind === "means";
    const error = (share) => `${percent(share)} ${means ? "% of the width of the bounds" : "percentage points"}`;
    const many = `${users.toLocaleString("en")} users`;
    const what = means ? (size === 1 ? "the mean" : "each mean") : "each share";
    shown("answer").textContent = {
      error: `With ${many} and epsilon = ${digits(epsilon)} the error of ${what} is ${error(row.rmse)}.`,
      users: `${many} are enough at epsilon = ${digits(epsilon)}.`,
      epsilon: `Epsilon = ${digits(epsilon)} is enough for ${many}.`,
    }[find];
    shown("mechanism").textContent = row === best
      ? `Take ${row.name}: it has the least error.`
      : `${row.name} has ${digits(row.rmse / best.rmse)} times the error of ${best.name}.`;
    const those = `${size.toLocaleString("en")} ${means ? "means" : "shares"}`;
    const all = means && size === 1 ? "the mean is" : `all ${those} are`;
    shown("furthest").textContent = `With a probability of ${digits(100 * level)} % ${all} within `
      + `${row.few ? "about " : ""}${error(row.most)} of the truth.`;
    shown("few").hidden = !row.few;
    const name = means ? "plan_mean" : "plan", sizes = means ? `n_columns=${size}` : `n_categories=${size}`;
    const known = [sizes];
    if (find !== "users") known.push(`n_users=${users}`);
    if (find !== "epsilon") known.push(`epsilon=${epsilon}`);
    if (find !== "error") known.push(`target_rmse=${Number(question.target.toPrecision(12))}`);
    if (level !== 0.95) known.push(`probability=${Number(level.toPrecision(12))}`);
    shown("code").textContent = `from dpestim.local import ${name}\n${name}(${known.join(", ")})`;
  }

  function list(question, rows, picked) {
    const units = { means: "percent of the width of the bounds", categories: "percentage points" };
    shown("unit").textContent = `All mechanisms; errors in ${units[question.kind]}.`;
    const cells = (row) => [row.name, percent(row.rmse), `${row.few ? "about " : ""}${percent(row.most)}`,
      ...(question.kind === "means" ? [] : [Math.round(row.bits).toLocaleString("en")])];
    shown("rows").replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      if (row === picked) line.className = "planner-picked";
      cells(row).forEach((text, k) => {
        const cell = document.createElement(k ? "td" : "th");
        if (!k) cell.scope = "row";
        cell.textContent = text;
        line.append(cell);
      });
      return line;
    }));
  }

  // Error over epsilon: the picked mechanism and the three next best, in logarithms.
  function draw(question, rows, picked) {
    const { kind, users, size, epsilon } = question, [least, most] = table.epsilons;
    const drawn = [picked, ...rows.filter((row) => row !== picked)].slice(0, 4);
    const box = { left: 62, right: 590, top: 12, bottom: 270 };
    const steps = Array.from({ length: 81 }, (_, k) => least * (most / least) ** (k / 80));
    const curves = drawn.map(({ name }) =>
      steps.map((x) => planner.number(kind, name, "error", x, size) / Math.sqrt(users)));
    const range = [Math.min(...curves.flat()) / 1.2, Math.max(...curves.flat()) * 1.2];
    const across = (x) => box.left + (box.right - box.left) * Math.log(x / least) / Math.log(most / least);
    const down = (y) => box.bottom - (box.bottom - box.top) * Math.log(y / range[0]) / Math.log(range[1] / range[0]);
    const svg = shown("curve");
    const part = (tag, attributes, text) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      if (text !== undefined) element.textContent = text;
      return element;
    };
    const parts = [part("title", {}, `Error over epsilon for ${users.toLocaleString("en")} users`)];
    for (const x of [0.1, 0.2, 0.5, 1, 2, 5, 10]) {
      parts.push(part("line", { x1: across(x), x2: across(x), y1: box.top, y2: box.bottom, class: "planner-grid" }),
        part("text", { x: across(x), y: box.bottom + 18, "text-anchor": "middle" }, String(x)));
    }
    for (let power = Math.floor(Math.log10(range[0])); power <= Math.log10(range[1]); power++) {
      for (const digit of range[1] / range[0] > 300 ? [1] : [1, 2, 5]) {
        const y = digit * 10 ** power;
        if (y < range[0] || y > range[1]) continue;
        parts.push(part("line", { x1: box.left, x2: box.right, y1: down(y), y2: down(y), class: "planner-grid" }),
          part("text", { x: box.left - 6, y: down(y) + 4, "text-anchor": "end" }, percent(y)));
      }
    }
    curves.forEach((curve, k) => {
      const path = curve.map((y, j) => `${j ? "L" : "M"}${across(steps[j]).toFixed(1)} ${down(y).toFixed(1)}`).join("");
      parts.push(part("path", { d: path, stroke: COLOURS[k], "stroke-dasharray": DASHES[k], class: "planner-curve",
        "stroke-width": k ? 1.8 : 3 }));
    });
    parts.push(part("line", { x1: across(epsilon), x2: across(epsilon), y1: box.top, y2: box.bottom,
      class: "planner-now" }));
    parts.push(part("circle", { cx: across(epsilon), cy: down(picked.rmse), r: 6, fill: COLOURS[0] }));
    parts.push(part("text", { x: -(box.top + box.bottom) / 2, y: 14, transform: "rotate(-90)",
      "text-anchor": "middle" }, kind === "means" ? "error (% of the width)" : "error (percentage points)"));
    parts.push(part("text", { x: (box.left + box.right) / 2, y: box.bottom + 38, "text-anchor": "middle" },
      "epsilon (small: more private)"));
    svg.replaceChildren(...parts);
    shown("legend").replaceChildren(...drawn.map(({ name }, k) => {
      const line = document.createElement("li"), sample = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      sample.setAttribute("viewBox", "0 0 30 8");
      sample.append(part("line", { x1: 0, x2: 30, y1: 4, y2: 4, stroke: COLOURS[k], "stroke-dasharray": DASHES[k],
        "stroke-width": k ? 1.8 : 3 }));
      line.append(sample, ` ${short(name)}`);
      return line;
    }));
  }

  answer();
  for (const box of [field("users"), field("epsilon")]) box.moved();
  root.planner = planner;
}

if (typeof module !== "undefined") module.exports = { Planner, furthest };
else {
  const root = document.getElementById("planner");
  if (root) start(root, JSON.parse(document.getElementById("planner-table").textContent));
}
