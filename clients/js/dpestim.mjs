/**
 * Surveys of dpestim for browsers and Node: answers are randomised here, and only randomised answers leave this device.
 *
 * Given the same random words, reports equal those of the Python package bit for bit. Integers decide about answers: a
 * float is only used where Python uses the same one, to turn a number into steps between its bounds.
 */

const WORD = 1n << 64n;
const STEP = 2 ** 32; // fixed point: parts of a step of a grid
// what random words are for, as dpestim/rng.py numbers it
const [SEED, RESPONSE, RARE, ROUNDING, SUBSET, AGAIN, PERMANENT, PERMANENT_RARE, COINS, SECOND, SECOND_RARE] = [
  0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11];
const LARGEST_EPSILON = 80n;

/** A survey that must not be answered, or a value that does not suit its question. */
export class SurveyError extends Error {}

function demand(holds, message) {
  if (!holds) throw new SurveyError(message);
}

// ------------------------------------------------------------------------------------------------ random words

const pool = new BigUint64Array(256);
let left = 0;

/** A word of 64 bits from the browser's secure source; no place is asked for twice. */
function secureWord() {
  if (!left) crypto.getRandomValues(pool);
  left = (left || pool.length) - 1;
  const word = pool[left];
  pool[left] = 0n;
  return word;
}

/** n words of a stage as one integer, the first word highest. */
function join(word, stage, n) {
  let u = 0n;
  for (let i = 0; i < n; i++) u = (u << 64n) | word(stage, i);
  return u;
}

/** A number below size, as a word says it. */
const below = (word, size) => (word * size) >> 64n;

/** Randomised response: x below `keep`, else one of the others, of `other` words each. */
function respond(x, u, keep, other) {
  if (u < keep) return x;
  const y = (u - keep) / other;
  return y < x ? y : y + 1n;
}

const patternLaws = new Map();

/** How 16 random bits decide on eight, each 1 with probability threshold / 2^64, and 512 where these do not. */
function patternLaw(threshold) {
  if (!patternLaws.has(threshold)) {
    const cell = 1n << 496n, table = new Uint8Array(65536).fill(255);
    const weights = Array.from({ length: 256 }, (_, pattern) => {
      const ones = BigInt(ones8(pattern));
      return threshold ** ones * (WORD - threshold) ** (8n - ones);
    });
    let at = 0;
    for (let p = 0; p < 255; p++) table.fill(p, at, (at += Number(weights[p] / cell)));
    let sum = BigInt(at) * cell;
    const bounds = weights.slice(0, 255).map((w) => (sum += w % cell));
    patternLaws.set(threshold, { table, bounds });
  }
  return patternLaws.get(threshold);
}

function ones8(byte) {
  let n = 0;
  for (; byte; byte >>= 1) n += byte & 1;
  return n;
}

/** Bytes of independent bits, each 1 with probability threshold / 2^64. */
function patterns(threshold, width, word, stage, rare) {
  const out = new Uint8Array(width);
  if (!threshold) return out;
  const { table, bounds } = patternLaw(threshold);
  let digits = 0n;
  for (let j = 0; j < width; j++, digits >>= 16n) {
    if (j % 4 === 0) digits = word(stage, 1 + j / 4);
    out[j] = table[Number(digits & 0xffffn)];
    if (out[j] < 255) continue;
    // a rare word has a counter of its own, so that its place counts twice
    let u = ((digits & 0xffffn) << 48n) | (word(rare, 16 * j) >> 16n);
    for (let i = 1; i < 8; i++) u = (u << 64n) | word(rare, 16 * j + 2 * i);
    out[j] = bounds.filter((b) => b <= u).length;
  }
  return out;
}

function setBit(bytes, place, on) {
  const bit = 1 << place % 8;
  bytes[place >> 3] = on ? bytes[place >> 3] | bit : bytes[place >> 3] & ~bit;
}

/** A fixed point, rounded without bias to the grid. */
const rounded = (fixed, word) => (fixed >> 32n) + ((word(ROUNDING, 0) & 0xffffffffn) < (fixed & 0xffffffffn) ? 1n : 0n);

// ------------------------------------------------------------------------------------------------ laws

/** An integer at most 2^640 e^(n / d), too small by less than a part in 10^150. */
function expLower([n, d]) {
  let term = 1n << 640n, sum = term;
  const x = (n << 630n) / d; // a 1024th of the exponent: what is squared ten times below
  for (let k = 1n; term; k++) sum += term = ((term * x) >> 640n) / k;
  for (let i = 0; i < 10; i++) sum = (sum * sum) >> 640n;
  return sum;
}

/** Whether a / b and b / a are at most e^epsilon for certain. */
const within = (a, b, epsilon) =>
  a > 0n && b > 0n && a << 640n <= expLower(epsilon) * b && b << 640n <= expLower(epsilon) * a;

/** An answer inside the window that begins at the input, or one of the outputs around it. */
function inWindow(c, at, u) {
  const inside = c.window * c.inside, q = (u - inside) / c.outside;
  if (u < inside) return at + u / c.inside;
  return q < at ? q : q + c.window;
}

/** One of the pairs of a set, or an empty slot: 2 key + (1 where the sign is minus), or 2 d + slot. */
function sample(pairs, length, d, word, coin) {
  const n = BigInt(pairs.length), slot = below(word, n > length ? n : length);
  if (slot >= n) return 2n * d + slot;
  return 2n * pairs[slot][0] + (coin >> 32n < pairs[slot][1] ? 0n : 1n);
}

/** The Bloom filter of a value in a cohort: h different bits of m, by SplitMix64. */
function bloom(x, cohort, m, h) {
  const u64 = (n) => BigInt.asUintN(64, n), mix = 0x9e3779b97f4a7c15n, out = new Uint8Array(Number(m) / 8), chosen = [];
  let seed = u64(((x << 8n) | cohort) * mix);
  for (let i = 0n; i < h; i++) {
    seed = u64(seed + mix);
    let z = u64((seed ^ (seed >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = u64((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    let place = Number(((z >> 32n) * (m - i)) >> 32n);
    for (const before of chosen) if (place >= before) place++;
    chosen.push(place);
    chosen.sort((a, b) => a - b);
    setBit(out, place, true);
  }
  return out;
}

const parity = (n) => (n ? (n & 1n) ^ parity(n >> 1n) : 0n);
const bitLength = (n) => n.toString(2).length;

/**
 * Laws by name: (constants, size of the domain, epsilon) => { sound, draw }. `sound` says that the constants make a law
 * of at most that epsilon; `draw(code, word)` returns the fields of a report. Proofs: the .md files of dpestim/local.
 */
const LAWS = {
  GRR(c, d, epsilon) {
    return {
      sound: c.keep + (d - 1n) * c.other === WORD ** c.n_words && within(c.keep, c.other, epsilon),
      draw: (x, word) => [respond(x, join(word, RESPONSE, c.n_words), c.keep, c.other)],
    };
  },

  Binary(c, d, epsilon) {
    const yes = [c.if_no, c.if_yes];
    return {
      sound: d === 2n && within(yes[0], yes[1], epsilon) && within(WORD - yes[0], WORD - yes[1], epsilon),
      draw: (x, word) => [word(RESPONSE, 0) < yes[x] ? 1n : 0n],
    };
  },

  OUE(c, d, epsilon) {
    const one = c.true_threshold, other = c.false_threshold, width = Number(d + 7n) >> 3;
    return {
      sound: within(one * (WORD - other), other * (WORD - one), epsilon),
      draw(x, word) {
        const bits = patterns(other, width, word, RESPONSE, RARE);
        bits[width - 1] &= 255 >> Number(-d & 7n);
        setBit(bits, Number(x), word(RESPONSE, 0) < one);
        return [bits];
      },
    };
  },

  OLH(c, d, epsilon) {
    const g = c.n_buckets, lane = c.lane_bits, size = 1n << lane;
    return {
      sound: c.keep + (g - 1n) * c.other === WORD ** c.n_words && within(c.keep, c.other, epsilon),
      draw(x, word) {
        const seed = word(SEED, 0), a = seed % size, b = lane === 64n ? word(SEED, 1) : seed >> 32n;
        const bucket = (((a * x + b) % size) * g) >> lane;
        return [a, b, respond(bucket, join(word, RESPONSE, c.n_words), c.keep, c.other)];
      },
    };
  },

  SS(c, d, epsilon) {
    const { k, batch, include } = c, draws = (k + batch - 1n) / batch, most = WORD / (d - 1n) ** batch;
    // two sets of the other values differ by at most the square of rho / most
    const rho = most + 2n * draws;
    return {
      sound: 0n < k && k < d && most > 0n && within(include * (d - k) * rho ** 2n, (WORD - include) * k * most ** 2n, epsilon)
        && within(include * (d - k) * most ** 2n, (WORD - include) * k * rho ** 2n, epsilon),
      draw(x, word) {
        const bits = new Uint8Array(Number(d + 7n) >> 3), own = word(RESPONSE, 0) < include;
        const others = Array.from({ length: Number(d) - 1 }, (_, v) => (v < x ? v : v + 1));
        let u = 0n;
        for (let i = 0, n = Number(k) - own; i < n; i++) {
          if (i % Number(batch) === 0) u = word(RESPONSE, 1 + i / Number(batch));
          const product = u * BigInt(others.length - i), j = i + Number(product >> 64n);
          u = product % WORD;
          setBit(bits, others[j], true);
          others[j] = others[i];
        }
        setBit(bits, Number(x), own);
        return [bits];
      },
    };
  },

  HR(c, d, epsilon) {
    const { n_blocks: blocks, half } = c, total = WORD ** c.n_words / half;
    return {
      sound: c.keep + (2n * blocks - 1n) * c.other === total && within(c.keep, c.other, epsilon)
        && !(half & (half - 1n)) && (2n * half - 1n) * blocks >= d,
      draw(x, word) {
        const u = join(word, RESPONSE, c.n_words), r = u % half, own = x % blocks, row = x / blocks + 1n;
        const slot = respond(0n, u / half, c.keep, c.other); // 0: the half of the value, 1: the other one of its block
        if (slot > 1n) {
          const block = slot / 2n - 1n;
          return [(block + (block < own ? 0n : 1n)) * 2n * half + (slot & 1n) * half + r];
        }
        const low = row & -row, t = 2n * (r - (r % low)) + (r % low); // r with a bit put in, where the row's lowest is
        return [own * 2n * half + t + (parity(row & t) === slot ? 0n : low)];
      },
    };
  },

  RAPPOR(c, d, epsilon) {
    const { wrong, low, high, n_bits: m, n_hashes: h, n_cohorts } = c, width = Number(m) / 8, right = WORD - wrong;
    const one = right * high + wrong * low, zero = wrong * high + right * low, all = WORD ** 2n;
    const noise = (answer, word) => {
      const bits = patterns(low, width, word, RESPONSE, RARE);
      if (low + high === WORD) return bits.map((b, i) => b ^ answer[i]);
      const second = patterns(WORD - high, width, word, SECOND, SECOND_RARE);
      return bits.map((b, i) => (b & ~answer[i]) | (~second[i] & answer[i]));
    };
    const fresh = (x, cohort, word) => {
      const filter = bloom(x, cohort, m, h);
      return patterns(wrong, width, word, PERMANENT, PERMANENT_RARE).map((b, i) => b ^ filter[i]);
    };
    return {
      sound: m % 8n === 0n && within((one * (all - zero)) ** h, (zero * (all - one)) ** h, epsilon),
      keeps: true,
      /** `memory` holds the cohort and, by value, the answers that all reports are noisy copies of. */
      draw(x, word, memory = {}) {
        const cohort = BigInt((memory.cohort ??= Number(below(word(SEED, 0), n_cohorts))));
        const answers = (memory.answers ??= {}), kept = answers[x];
        const answer = kept ? fromText(kept) : fresh(x, cohort, word);
        answers[x] = toText(answer);
        return [cohort, noise(answer, word)];
      },
    };
  },

  PM(c, d, epsilon) {
    return {
      top: Number(c.grid) * STEP,
      codes: c.grid + c.window,
      sound: c.window * c.inside + c.grid * c.outside === WORD && within(c.inside, c.outside, epsilon),
      draw: (fixed, word) => [inWindow(c, rounded(fixed, word), word(RESPONSE, 0))],
    };
  },

  HM(c, d, epsilon) {
    const window = c.window ?? 0n, piecewise = window && window * c.inside + c.grid * c.outside;
    const codes = (window && window + c.grid) + 2n, most = c.least + c.grid * c.rise;
    return {
      top: Number(c.grid) * STEP,
      codes,
      sound: piecewise + c.least + most === WORD && within(most, c.least, epsilon)
        && (!window || within(c.inside, c.outside, epsilon)),
      draw(fixed, word) {
        const at = rounded(fixed, word), u = word(RESPONSE, 0);
        if (u < piecewise) return [inWindow(c, at, u)];
        return [codes - (u - piecewise < c.least + at * c.rise ? 1n : 2n)];
      },
    };
  },

  Duchi(c, d, epsilon) {
    return {
      top: STEP,
      codes: 2n,
      sound: 2n * c.other + (c.per_unit << 32n) === WORD && within(WORD - c.other, c.other, epsilon),
      draw: (fixed, word) => [word(RESPONSE, 0) < c.other + fixed * c.per_unit ? 1n : 0n],
    };
  },

  PCKVUnary(c, d, epsilon) {
    const { keep, other, length } = c, turned = WORD - keep, off = WORD - 2n * other, width = Number(d + 7n) >> 3;
    return {
      sound: 4n * other < WORD && within(keep, turned, epsilon) && within(keep * off, other * WORD, epsilon)
        && within(WORD * other, off * turned, epsilon),
      draw(pairs, word) {
        const bits = patterns(2n * other, width, word, RESPONSE, RARE), coins = [word(COINS, 0), word(COINS, 1)];
        const chosen = sample(pairs, length, d, word(RESPONSE, 0), coins[0]), signs = new Uint8Array(width);
        bits[width - 1] &= 255 >> Number(-d & 7n);
        for (let j = 0, s = 0n; j < width; j++, s >>= 8n) {
          if (j % 8 === 0) s = word(COINS, 2 + j / 8);
          signs[j] = bits[j] & Number(s & 255n);
        }
        if (chosen < 2n * d) {
          const isOn = (coins[0] & 1n) === 1n, plus = (chosen & 1n) !== (coins[1] < keep ? 1n : 0n);
          setBit(bits, Number(chosen >> 1n), isOn);
          setBit(signs, Number(chosen >> 1n), isOn && plus);
        }
        return [bits, signs];
      },
    };
  },

  PCKVCodes(c, d, epsilon) {
    const n = 2n * d + c.length, sampled = (WORD + c.length - 1n) / c.length;
    return {
      sound: c.keep + (n - 1n) * c.other === WORD ** c.n_words && c.keep >= c.other
        && within(WORD * c.other + sampled * (c.keep - c.other), WORD * c.other, epsilon),
      draw(pairs, word) {
        const chosen = sample(pairs, c.length, d, word(COINS, 0), word(COINS, 1));
        return [respond(chosen, join(word, RESPONSE, c.n_words), c.keep, c.other)];
      },
    };
  },

  NumberOrMissing(c, d, epsilon, number) {
    const { told, untold } = c, bits = BigInt(bitLength(BigInt(number.top)) - 1);
    return {
      top: number.top,
      codes: number.codes + 1n,
      missing: true,
      sound: number.sound && untold < told && within(told, untold, epsilon)
        && within(WORD - untold, WORD - told, minus(epsilon, number.epsilon)),
      draw(fixed, word) {
        const missing = fixed === null, anything = word(COINS, 0) >> (64n - bits);
        const said = word(SECOND, 0) < (missing ? told : untold), [code] = number.draw(missing ? anything : fixed, word);
        return [said ? number.codes : code];
      },
    };
  },
};
LAWS.SUE = LAWS.OUE;
LAWS.BLH = LAWS.OLH;
LAWS.SW = LAWS.PM;

// ------------------------------------------------------------------------------------------------ values

/** What tells a category from the others: 1 and true are one, as in Python, and "1" is another. */
function identity(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "missing";
  if (value instanceof Date) return "d" + value.toISOString().slice(0, 10);
  if (typeof value === "object") return JSON.stringify(value);
  return (typeof value === "string" ? "s" : "n") + (typeof value === "boolean" ? Number(value) : value);
}

const number = (text) => (/^-?\d+(\.\d+)?(e-?\d+)?$/.test(text) ? Number(text) : NaN);

function fraction(text) {
  const [, n, d = "1"] = /^(\d+)(?:\/(\d+))?$/.exec(text) ?? [];
  demand(n && BigInt(d), "the survey has something else where a fraction must be");
  return [BigInt(n), BigInt(d)];
}
const plus = ([a, b], [c, d]) => [a * d + c * b, b * d];
const minus = ([a, b], [c, d]) => [a * d - c * b, b * d];
const compare = ([a, b], [c, d]) => (a * d < c * b ? -1 : a * d > c * b ? 1 : 0);

/** A number as steps between its bounds, as dpestim/_core/src/pm.h has it: exact or correctly rounded, operation by operation. */
function steps(x, low, high, top) {
  const fixed = Math.trunc((Math.min(Math.max(x, low), high) - low) * (top / (high - low)));
  return BigInt(x >= high || fixed > top ? top : fixed);
}

/** The same for the value of a pair: rounded to the nearest of 2^32 steps, ties to even. */
function place(x, low, high) {
  const at = ((Math.min(Math.max(x, low), high) - low) / (high - low)) * STEP, down = Math.floor(at), half = at - down;
  return BigInt(down + (half > 0.5 || (half === 0.5 && down % 2 === 1) ? 1 : 0));
}

/** How answers become what a law takes, by the kind of a domain: (domain, law) => answer => code. */
const READERS = {
  categories(domain) {
    const codes = new Map(domain.values.map((value, code) => [identity(value), BigInt(code)]));
    demand(codes.size === domain.values.length, "the survey names a category twice");
    return (value) => codes.get(identity(value));
  },
  numbers(domain, law) {
    const [low, high] = [domain.low, domain.high].map(number), { top } = law;
    demand(low < high && top / (high - low) < Infinity && Boolean(law.missing) === domain.missing, "the survey has bounds that no law suits");
    return (value) => {
      if (typeof value === "number" && !Number.isNaN(value)) return Number.isFinite(value) ? steps(value, low, high, top) : undefined;
      return law.missing && identity(value) === "missing" ? null : undefined;
    };
  },
  keys(domain) {
    const [low, high] = [domain.low, domain.high].map(number), codes = READERS.categories(domain);
    demand(low < high, "the survey has bounds that no law suits");
    return (value) => {
      const entries = value instanceof Map || Array.isArray(value) ? [...value] : Object.entries(value ?? {});
      const pairs = entries.map(([key, x]) => [codes(key), Number.isFinite(x) ? place(x, low, high) : undefined]);
      if (pairs.flat().includes(undefined) || new Set(pairs.map(([key]) => key)).size < pairs.length) return undefined;
      return pairs.sort(([a], [b]) => (a < b ? -1 : 1));
    };
  },
};

// ------------------------------------------------------------------------------------------------ reports

/** One report as bytes, ready to be sent; `text()` is the same for URLs and logs. */
export class Message extends Uint8Array {
  text() {
    return toText(this);
  }
}

const toText = (bytes) =>
  btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
const fromText = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 && 0xedb88320);
  }
  return ~crc >>> 0;
}

/** Numbers, or bytes of bits, side by side without gaps, the least significant bit first. */
function pack(fields, bytes) {
  let at = 0;
  for (const [value, bits] of fields) {
    for (let i = 0, rest = value; i < bits; i++, at++) {
      const bit = value instanceof Uint8Array ? (value[i >> 3] >> i % 8) & 1 : Number(rest & 1n);
      if (!(value instanceof Uint8Array)) rest >>= 1n;
      if (bit) setBit(bytes, at, true);
    }
  }
}

/** The one form of JSON values that both sides hash. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value && typeof value === "object") {
    return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)}}`;
  }
  demand(typeof value !== "number" || Number.isSafeInteger(value), "a survey has no numbers but integers");
  demand(typeof value !== "string" || !/\p{Surrogate}/u.test(value), "a survey has no half characters");
  return JSON.stringify(value);
}

/** A survey that was checked: what it asks, what it promises, and reports of answers. */
export class Survey {
  #survey;
  #columns;

  /** Check a survey (text, or what JSON.parse makes of it) and return it, or throw a SurveyError that says why not. */
  static async load(json, { today = now() } = {}) {
    const survey = typeof json === "string" ? JSON.parse(json) : structuredClone(json);
    const { id, ...rest } = survey;
    demand(survey.format === "dpestim survey", "this is no survey of dpestim");
    demand(survey.version === "1.0", "this survey has another version than 1.0: update dpestim.mjs");
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(rest))));
    demand(Array.from(hash.slice(0, 16), (b) => b.toString(16).padStart(2, "0")).join("") === id,
      "this survey was changed after it was made: its id is that of another one");
    return new Survey(survey, today);
  }

  /** Use `Survey.load`, which checks the survey's id. */
  constructor(survey, today) {
    const { columns, sampled, report, guarantee } = survey;
    demand(only(survey, "client columns format guarantee id name report sampled valid_from valid_until version")
      && only(report, "bits bytes states"), "the survey has parts that this client does not know: update dpestim.mjs");
    this.#survey = survey;
    this.#columns = columns.map(columnOf);
    const epsilons = this.#columns.map((c) => c.law.epsilon).sort(compare).slice(-(sampled ?? columns.length));
    demand(compare(epsilons.reduce(plus), fraction(guarantee.epsilon)) === 0,
      "the epsilons of the survey's columns do not add up to the epsilon that it promises");
    this.#check(today);
  }

  /** The name of the survey. */
  get name() {
    return this.#survey.name;
  }

  /** 32 hexadecimal digits that every report carries. */
  get id() {
    return this.#survey.id;
  }

  /** { epsilon, model, text }: what is promised, in words for the person who is asked. */
  get guarantee() {
    return this.#survey.guarantee;
  }

  /** { name, question, domain } of each column, in the survey's order. */
  get questions() {
    return this.#survey.columns.map(({ name, question, domain }) => ({ name, question, domain }));
  }

  /**
   * Randomise the answers of one person and return the message to send.
   *
   * values: an object by the columns' names, a Map or an array in the order of the columns. state: an object that the
   * caller keeps for this person, at first {}; it is changed. Without it nothing is kept. nonce: true adds a random
   * number by which a collector counts a message that arrives twice only once. words: for tests alone.
   */
  report(values, options) {
    return this.explain(values, options).message;
  }

  /**
   * Return { message, fields, others }: the report, and what it would have been for `others`, a list of other values.
   * All of them are made of the same random words. Show them to the person; send the message alone.
   */
  explain(values, { state, nonce = false, others = [], words = secureWord, today = now() } = {}) {
    this.#check(today);
    demand(!state || this.#survey.report.states, "the survey's clients keep no state");
    demand(!state?.survey || state.survey === this.id, "the state belongs to another survey");
    const codes = [values, ...others].map((each) => this.#columns.map((column, at) => column.read(each, at)));
    const drawn = new Map(), before = JSON.stringify(state ?? {});
    const word = (...at) => drawn.get(`${at}`) ?? (drawn.set(`${at}`, words(...at)), drawn.get(`${at}`));
    const mark = nonce && crypto.getRandomValues(new Uint8Array(8));
    const [own, ...rest] = codes.map((each) => this.#make(each, JSON.parse(before), word, mark));
    if (state) Object.assign(state, own.state);
    const shown = ({ message, fields }) => ({ message, fields });
    return { ...shown(own), others: rest.map(shown) };
  }

  #check(today) {
    const { valid_from: from, valid_until: until } = this.#survey;
    demand(!(from > today) && !(until && until < today), "the survey is not open today: see its dates");
  }

  #make(codes, state, words, nonce) {
    const { sampled, report, id } = this.#survey, fields = [];
    const drawn = sampled === null ? codes.map((_, at) => at) : (state.drawn ??= choose(words, codes.length, sampled));
    const memory = (state.memory ??= {}), bits = [], slot = Math.max(...this.#columns.map((column) => column.bits));
    for (const at of drawn) {
      const { law, name, layout, bits: own } = this.#columns[at];
      const said = law.draw(codes[at], (stage, position) => words(stage, at, position), (memory[at] ??= {}));
      if (sampled !== null) bits.push([BigInt(at), bitLength(codes.length - 1)]);
      layout.forEach(({ bits: n }, i) => bits.push([said[i], n]));
      if (sampled !== null) bits.push([0n, slot - own]);
      fields.push({ name, report: Object.fromEntries(layout.map((field, i) => [field.name, said[i]])) });
    }
    const head = [68, 80, 82, 1, nonce ? 1 : 0, ...id.match(/../g).map((pair) => parseInt(pair, 16)), ...(nonce || [])];
    const message = new Message(head.length + report.bytes + 4);
    message.set(head);
    pack(bits, message.subarray(head.length));
    new DataView(message.buffer).setUint32(message.length - 4, crc32(message.subarray(0, -4)), true);
    return { message, fields, state: { ...state, survey: id, reports: (state.reports ?? 0) + 1 } };
  }
}

/** k of d columns, every set equally likely; words that allow no uniform draw are drawn again. */
function choose(words, d, k) {
  for (let attempt = 0; attempt < 5; attempt++) {
    const chosen = [];
    for (let j = 0; j < k; j++) {
      const word = attempt ? words(AGAIN, 0, 2 * ((attempt - 1) * k + j)) : words(SUBSET, 0, j), range = BigInt(d - j);
      if ((word * range) % WORD < WORD % range) break;
      let number = Number(below(word, range));
      for (const before of chosen) if (before <= number) number++;
      chosen.push(number);
      chosen.sort((a, b) => a - b);
    }
    if (chosen.length === k) return chosen;
  }
  throw new SurveyError("the source of random words is not random");
}

/** The law `law` of d values, checked. */
function lawOf({ name, epsilon, constants, arguments: { number } }, d) {
  const share = fraction(epsilon), c = {};
  for (const [key, value] of Object.entries(constants)) c[key] = /^\d+$/.test(value) ? BigInt(value) : undefined;
  demand(Object.hasOwn(LAWS, name), `this client does not know the law ${name}: update dpestim.mjs`);
  demand(share[0] > 0n && share[0] <= LARGEST_EPSILON * share[1], "the survey has an epsilon that is no protection");
  let law = {};
  try {
    law = LAWS[name](c, d, share, number && lawOf(number, d));
  } catch {} // (constants that are missing, or no numbers)
  demand(law.sound, `the survey's constants of the law ${name} do not keep its epsilon: do not answer it`);
  return { ...law, epsilon: share };
}

function columnOf(column) {
  const { name, domain, law, fields } = column;
  demand(only(column, "domain fields law name question") && Object.hasOwn(READERS, domain.kind),
    "the survey has a column that this client does not know: update dpestim.mjs");
  const made = lawOf(law, BigInt((domain.values ?? []).length)), code = READERS[domain.kind](domain, made);
  return {
    name,
    law: made,
    layout: fields,
    bits: fields.reduce((sum, field) => sum + field.bits, 0),
    read(values, at) {
      const value = code(Array.isArray(values) ? values[at] : values instanceof Map ? values.get(name) : values[name]);
      demand(value !== undefined, `the answer to ${name} is none that the survey allows: see its questions`);
      return value;
    },
  };
}

const only = (object, keys) => Object.keys(object).sort().join(" ") === keys;
const now = () => new Date().toISOString().slice(0, 10);
