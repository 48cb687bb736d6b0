/** Surveys of dpestim, see dpestim.d.ts. Integers decide about answers; floats turn numbers into steps, as in Python. */

const WORD = 1n << 64n;
// what words are for; rare ones have the next number
const SEED = 0, RESPONSE = 1, ROUNDING = 4, SUBSET = 5, PERMANENT = 7, COINS = 9, SECOND = 10;

const UPDATE = ": update dpestim.mjs";

export class SurveyError extends Error {}

function demand(holds, message) {
	if (!holds) throw new SurveyError(message);
}

// ---- random words

const pool = new BigUint64Array(256);
let left = 0;

/** 64 bits from the platform's secure source, used once. */
function secureWord() {
	if (!left) crypto.getRandomValues(pool);
	left = (left || pool.length) - 1;
	const word = pool[left];
	pool[left] = 0n;
	return word;
}

const below = (word, size) => (word * size) >> 64n;

/** `keep` draws u say x, and `other` each other value. */
function respond(x, u, { keep, other }) {
	if (u < keep) return x;
	const y = (u - keep) / other;
	return y < x ? y : y + 1n;
}
const draw = ({ n_words: n }, word) => (n < 2n ? word(RESPONSE, 0) : (word(RESPONSE, 0) << 64n) + word(RESPONSE, 1));
const answer = (x, weights, word) => respond(x, draw(weights, word), weights);

/** Makes bytes of bits, 1 in threshold of 2^64 times. */
function patterns(threshold, width, stage = RESPONSE) {
	const turn = 2n * threshold > WORD ? 255 : 0, one = turn ? WORD - threshold : threshold;
	if (!one) return () => new Uint8Array(width).fill(turn);
	// what 16 random bits say about eight; where it is 255, 512 random bits decide by bounds
	const cell = 1n << 496n, table = new Uint8Array(65536).fill(255);
	let weights = [1n];
	for (let i = 0; i < 8; i++) weights = [WORD - one, one].flatMap((t) => weights.map((w) => w * t));
	weights.pop();
	// each column of 256: of what has the fewest cells left, then of what has most
	const left = weights.map((w, pattern) => 256 * Number(w / cell) + pattern);
	const all = left.reduce((n, key) => n + (key >> 8), 0);
	for (let at = 0, i; at < all; at++) {
		if (at % 256 === 0) i = left.sort((a, b) => a - b).findIndex((key) => key > 255);
		if (left[i] < 256) i = 254;
		table[at] = left[i];
		left[i] -= 256;
	}
	let sum = BigInt(all) * cell;
	const bounds = weights.map((w) => (sum += w % cell));
	return (word) => {
		let digits;
		return new Uint8Array(width).map((_, j) => {
			digits = j % 4 ? digits >> 16n : word(stage, 1 + j / 4);
			const first = digits & 0xffffn, pattern = table[first];
			if (pattern < 255) return pattern ^ turn;
			let u = (first << 48n) | (word(stage + 1, 16 * j) >> 16n);
			for (let i = 2; i < 16; i += 2) u = (u << 64n) | word(stage + 1, 16 * j + i);
			return bounds.filter((bound) => bound <= u).length ^ turn;
		});
	};
}

function setBit(bytes, place, on = true) {
	const at = Number(place) >> 3, bit = 1 << (Number(place) & 7);
	bytes[at] = on ? bytes[at] | bit : bytes[at] & ~bit;
}

// ---- laws

/** Just below 2^640 e^(n / d). */
function expLower([n, d]) {
	let term = 1n << 640n, sum = term;
	const x = (n << 630n) / d; // (made up for by ten squares)
	for (let k = 1n; term; k++) sum += term = ((term * x) >> 640n) / k;
	for (let i = 0; i < 10; i++) sum = (sum * sum) >> 640n;
	return sum;
}

/** Are a / b and b / a at most e^epsilon? */
function within(a, b, epsilon) {
	const e = expLower(epsilon);
	return a > 0n && b > 0n && a << 640n <= e * b && b << 640n <= e * a;
}

/** Whether weights of n answers are ok and make up all draws, of which `share` go together. */
const fair = ({ keep, other, n_words }, n, ok, share = 1n) =>
	n_words < 3n && keep + (n - 1n) * other === WORD ** n_words / share && ok(keep, other);

/** A fixed point, rounded to the grid. */
const rounded = (fixed, word) => (fixed >> 32n) + BigInt((word(ROUNDING, 0) & 0xffffffffn) < (fixed & 0xffffffffn));

/** An answer inside the window from the input on, or around it. */
function inWindow(at, u, { window, inside, outside }) {
	const limit = window * inside, q = (u - limit) / outside;
	if (u < limit) return at + u / inside;
	return q < at ? q : q + window;
}

/** One of the pairs: 2 key + (is the sign minus), or an empty slot: 2 d + slot. */
function sample(pairs, length, d, word, coin) {
	const n = BigInt(pairs.length), slot = below(word, n > length ? n : length);
	return slot < n ? 2n * pairs[slot][0] + BigInt(coin >> 32n >= pairs[slot][1]) : 2n * d + slot;
}

/** Add to an ascending list what has this place outside of it. */
function insert(chosen, place) {
	for (const before of chosen) if (before <= place) place++;
	chosen.push(place);
	chosen.sort((a, b) => Number(a - b));
	return place;
}

/** Different bits for a value in a cohort, by SplitMix64. */
function bloom(x, cohort, { n_bits, n_hashes, increment, multipliers: [first, second] }) {
	const out = new Uint8Array(bytesFor(n_bits)), chosen = [];
	for (let i = 0n; i < n_hashes; i++) {
		let z = ((((x << 8n) | BigInt(cohort)) + i + 1n) * increment) % WORD;
		z = ((z ^ (z >> 30n)) * first) % WORD;
		z = ((z ^ (z >> 27n)) * second) % WORD;
		setBit(out, insert(chosen, ((z >> 32n) * (n_bits - i)) >> 32n));
	}
	return out;
}

const parity = (n) => (n ? (n & 1n) ^ parity(n >> 1n) : 0n);
const bytesFor = (d) => Number(d + 7n) >> 3;

/**
 * (constants, size of the domain, ok) => { sound, draw }. ok(a, b): whether two weights keep the law's epsilon; sound:
 * whether all do; draw(code, word): the fields of a report. Proofs: the .md files of dpestim/local.
 */
const LAWS = {
	GRR: ({ weights }, d, ok) => ({
		sound: fair(weights, d, ok),
		draw: (x, word) => [answer(x, weights, word)],
	}),

	Binary: ({ ones: [no, yes] }, d, ok) => ({
		sound: d === 2n && ok(no, yes) && ok(WORD - no, WORD - yes),
		draw: (x, word) => [BigInt(word(RESPONSE, 0) < (x ? yes : no))],
	}),

	OUE({ true_threshold: own, false_threshold: other }, d, ok) {
		const bits = patterns(other, bytesFor(d));
		return {
			sound: ok(own * (WORD - other), other * (WORD - own)),
			draw(x, word) {
				const out = bits(word);
				setBit(out, x, word(RESPONSE, 0) < own);
				return [out];
			},
		};
	},

	OLH: ({ weights, n_buckets, lane_bits }, d, ok) => ({
		sound: fair(weights, n_buckets, ok),
		draw(x, word) {
			const lane = 1n << lane_bits, seed = word(SEED, 0), a = seed % lane, b = lane < WORD ? seed / lane : word(SEED, 1);
			return [a, b, answer((((a * x + b) % lane) * n_buckets) / lane, weights, word)];
		},
	}),

	SS({ weights: { k, batch, include } }, d, ok) {
		// other sets are as likely but for a factor of rho / least
		const least = WORD / (d - 1n) ** batch, rho = least + 2n * ((k + batch - 1n) / batch), per = Number(batch);
		const own = include * (d - k), without = (WORD - include) * k;
		return {
			sound: least > k && own >= without && ok(own * rho ** 2n, without * least ** 2n),
			draw(x, word) {
				const out = new Uint8Array(bytesFor(d)), among = word(RESPONSE, 0) < include;
				const others = Array.from({ length: Number(d) - 1 }, (_, v) => (v < x ? v : v + 1));
				for (let i = 0, u; i < Number(k) - among; i++) {
					if (i % per === 0) u = word(RESPONSE, 1 + i / per);
					const range = BigInt(others.length - i), j = i + Number(below(u, range));
					u = (u * range) % WORD;
					setBit(out, others[j]);
					others[j] = others[i];
				}
				setBit(out, x, among);
				return [out];
			},
		};
	},

	HR: ({ weights, n_blocks, half }, d, ok) => ({
		sound: fair(weights, 2n * n_blocks, ok, half) && !(half & (half - 1n)) && d <= (2n * half - 1n) * n_blocks,
		draw(x, word) {
			const u = draw(weights, word), r = u % half, own = x % n_blocks, row = x / n_blocks + 1n, bit = row & -row;
			const slot = respond(0n, u / half, weights); // 0 and 1: the halves of the value's block
			if (slot > 1n) return [(2n * (slot / 2n - BigInt(slot / 2n <= own)) + (slot & 1n)) * half + r];
			const t = 2n * (r - (r % bit)) + (r % bit); // (a bit goes in where the row's lowest is)
			return [2n * own * half + t + (parity(row & t) === slot ? 0n : bit)];
		},
	}),

	RAPPOR(c, d, ok) {
		const { wrong, low, high, n_hashes } = c, width = bytesFor(c.n_bits), right = WORD - wrong, all = WORD ** 2n;
		const one = right * high + wrong * low, zero = wrong * high + right * low;
		const permanent = patterns(wrong, width, PERMANENT), ones = patterns(low, width);
		const zeros = low + high === WORD ? ones : patterns(WORD - high, width, SECOND);
		return {
			kept: [right, wrong].map((n) => n ** (2n * n_hashes)),
			sound: wrong < WORD && low < high && high <= WORD
				&& ok((one * (all - zero)) ** n_hashes, (zero * (all - one)) ** n_hashes),
			// `kept`: the cohort and, by value, what all reports are noisy copies of
			draw(x, word, kept) {
				kept.cohort ??= Number(below(word(SEED, 0), c.n_cohorts));
				const filter = bloom(x, kept.cohort, c);
				const said = ((kept.answers ??= {})[x] ??= [...permanent(word).map((byte, i) => byte ^ filter[i])]);
				const turned = zeros(word);
				return [kept.cohort, ones(word).map((byte, i) => (byte & ~said[i]) | (~turned[i] & said[i]))];
			},
		};
	},

	PM: ({ weights: w }, d, ok) => ({
		top: w.grid << 32n,
		codes: w.grid + w.window,
		sound: w.window * w.inside + w.grid * w.outside === WORD && ok(w.inside, w.outside),
		draw: (fixed, word) => [inWindow(rounded(fixed, word), word(RESPONSE, 0), w)],
	}),

	HM({ hybrid: { grid, least, rise, window: w } }, d, ok) {
		const most = least + grid * rise, first = w ? w.window * w.inside + grid * w.outside : 0n;
		const codes = (w ? grid + w.window : 0n) + 2n;
		return {
			top: grid << 32n,
			codes,
			sound: first + least + most === WORD && ok(most, least) && (!w || ok(w.inside, w.outside)),
			draw(fixed, word) {
				const at = rounded(fixed, word), u = word(RESPONSE, 0);
				return [u < first ? inWindow(at, u, w) : codes - (u - first < least + at * rise ? 1n : 2n)];
			},
		};
	},

	Duchi: ({ other, per_unit }, d, ok) => ({
		top: 1n << 32n,
		codes: 2n,
		sound: 2n * other + (per_unit << 32n) === WORD && ok(WORD - other, other),
		draw: (fixed, word) => [BigInt(word(RESPONSE, 0) < other + fixed * per_unit)],
	}),

	NumberOrMissing: ({ told, untold, number }, d, ok) => ({
		top: number.top,
		missing: true,
		sound: untold < told && ok(told, untold) && within(WORD - untold, WORD - told, minus(ok.epsilon, number.epsilon)),
		draw(fixed, word) {
			const [code] = number.draw(fixed ?? below(word(COINS, 0), number.top), word);
			return [word(SECOND, 0) < (fixed === null ? told : untold) ? number.codes : code];
		},
	}),

	PCKVUnary({ keep, other, length }, d, ok) {
		const turned = WORD - keep, off = WORD - 2n * other, cells = patterns(2n * other, bytesFor(d));
		return {
			pairs: true,
			sound: 4n * other < WORD && ok(keep, turned) && ok(keep * off, other * WORD) && ok(WORD * other, off * turned),
			draw(pairs, word) {
				const on = cells(word), own = word(COINS, 0), chosen = sample(pairs, length, d, word(RESPONSE, 0), own);
				const plus = on.map((byte, j) => byte & Number((word(COINS, 2 + (j >> 3)) >> BigInt(8 * (j & 7))) & 255n));
				if (chosen < 2n * d) {
					setBit(on, chosen >> 1n, own & 1n);
					setBit(plus, chosen >> 1n, own & (chosen ^ BigInt(word(COINS, 1) < keep)) & 1n);
				}
				return [on, plus];
			},
		};
	},

	PCKVCodes: ({ weights: w, length }, d, ok) => ({
		pairs: true,
		// (a code is sampled 1 in length times)
		sound: fair(w, 2n * d + length, (keep, other) =>
			keep >= other && ok(WORD * other + ((WORD + length - 1n) / length) * (keep - other), WORD * other)),
		draw: (pairs, word) => [answer(sample(pairs, length, d, word(COINS, 0), word(COINS, 1)), w, word)],
	}),
};
Object.assign(LAWS, { SUE: LAWS.OUE, BLH: LAWS.OLH, SW: LAWS.PM });

/** What tells categories apart: 1 and true are the same, "1" is another. */
function identity(value) {
	if ((value ?? NaN) !== value) return "missing";
	if (typeof value === "object") return value.number ? identity(+value.number) : (value.integer ?? canonical(value));
	if (typeof value === "string") return `"${value}`;
	return `${value === !!value || Number.isInteger(value) ? BigInt(value) : value}`;
}

const fraction = (text) => /^\d+(\/[1-9]\d*)?$/.test(text) && text.split("/").concat("1").slice(0, 2).map(BigInt);
const plus = ([a, b], [c, d]) => [a * d + c * b, b * d];
const minus = ([a, b], [c, d]) => [a * d - c * b, b * d];
const clipped = (x, low, high) => Math.min(Math.max(x, low), high) - low;

/** What a law takes of an answer, by kinds; undefined: no answer. */
const READERS = {
	categories(values) {
		const codes = new Map(values.map((value, code) => [identity(value), BigInt(code)]));
		return (value) => codes.get(identity(value));
	},

	numbers(_, low, high, { top, missing }) {
		return (x) => {
			if (missing && identity(x) === "missing") return null;
			const fixed = Math.trunc(clipped(x, low, high) * (Number(top) / (high - low)));
			return Number.isFinite(x) ? BigInt(x >= high || fixed > top ? top : fixed) : undefined;
		};
	},

	keys(values, low, high) {
		const code = READERS.categories(values);
		const place = (x) => {
			const at = (clipped(x, low, high) / (high - low)) * 2 ** 32, down = Math.floor(at);
			return BigInt(down + (at - down > 0.5 || (at - down === 0.5 && down % 2) ? 1 : 0)); // ties to even
		};
		return (value) => {
			const read = new Map();
			for (const [key, x] of Symbol.iterator in Object(value) ? value : Object.entries(value ?? {})) {
				if (code(key) === undefined || read.has(code(key)) || !Number.isFinite(x)) return undefined;
				read.set(code(key), place(x));
			}
			return [...read].sort(([a], [b]) => Number(a - b));
		};
	},
};

function integers(value) {
	if (Array.isArray(value)) return value.map(integers);
	if (!value || typeof value !== "object") return /^\d+$/.test(value) ? BigInt(value) : undefined;
	return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, integers(part)]));
}

/** The law of a domain of d values, or a SurveyError. */
function lawOf({ name, epsilon, arguments: given, constants }, d) {
	demand(Object.hasOwn(LAWS, name), `the survey has an unknown law, ${name}${UPDATE}`);
	const share = fraction(epsilon), ok = (a, b) => within(a, b, share);
	let law;
	try {
		const number = given.number && lawOf(given.number, d);
		ok.epsilon = share;
		law = LAWS[name]({ ...integers(given), ...integers(constants), number }, d, ok);
	} catch {} // (a constant is missing)
	demand(law?.sound && share[0] <= 80n * share[1], `the law ${name} does not keep its epsilon`);
	return { kept: [1n, 0n], ...law, epsilon: share };
}

function columnOf({ name, domain, law: written, fields }) {
	const { low, high, keys, values = keys ?? [] } = domain, law = lawOf(written, BigInt(values.length));
	const kind = law.pairs ? "keys" : law.top ? "numbers" : "categories";
	const sized = kind[0] === "c" || (+high > low && high - low < 1 / 0);
	demand(kind === domain.kind && sized, `${name} has an unknown domain${UPDATE}`);
	const code = READERS[kind](values, +low, +high, law);
	const read = (answers, at) => {
		const found = code(Array.isArray(answers) ? answers[at] : answers[name]);
		demand(found !== undefined, `the survey does not allow this answer to ${name}`);
		return found;
	};
	const widths = fields.map(({ bits, count }) => bits * count);
	return { name, law, read, widths, size: widths.reduce((a, b) => a + b) };
}

/** k of d columns, uniformly. */
function choose(words, d, k) {
	for (let attempt = 0; attempt < 5; attempt++) {
		const chosen = [];
		for (let j = 0; j < k; j++) {
			const at = attempt ? 2 * ((attempt - 1) * k + j) : j, word = words(SUBSET + !!attempt, 0, at), range = BigInt(d - j);
			if ((word * range) % WORD < WORD % range) break;
			insert(chosen, Number(below(word, range)));
		}
		if (chosen.length === k) return chosen;
	}
	demand(false, "words are not random");
}

const bytesOf = (hex) => hex.match(/../g).map((pair) => parseInt(pair, 16));

export class Message extends Uint8Array {
	text() {
		const text = Array.from(this, (byte) => String.fromCharCode(byte)).join("");
		return btoa(text).replace(/[+/=]/g, (c) => ({ "+": "-", "/": "_" })[c] ?? "");
	}
}

function canonical(value) {
	if (Array.isArray(value)) return `[${value.map(canonical)}]`;
	if (value && typeof value === "object")
		return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)}}`;
	demand(typeof value === "number" ? Number.isSafeInteger(value) : !/\p{Surrogate}/u.test(value), "this is no survey");
	return JSON.stringify(value);
}

export class Survey {
	#survey;
	#columns;

	static async load(json) {
		const survey = JSON.parse(typeof json === "string" ? json : JSON.stringify(json)), { id, ...rest } = survey;
		demand(survey.format === "dpestim survey", "this is no dpestim survey");
		demand(survey.version === (survey.language ? "1.2" : "1.0"), `the survey has another version${UPDATE}`);
		const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(rest))));
		demand(id.length === 32 && bytesOf(id).every((byte, i) => byte === hash[i]), "the survey was changed");
		return new Survey(survey);
	}

	constructor(survey) {
		const { name, id, columns, sampled, report, guarantee, language, ...rest } = survey;
		demand(`${Object.keys(rest).sort()}` === "client,format,valid_from,valid_until,version" && guarantee.model === "local" &&
			!columns.some(({ fake }) => fake), `the survey is unknown${UPDATE}`);
		this.#survey = survey;
		this.#columns = columns.map(columnOf);
		const { epsilon, longitudinal_epsilon: all } = guarantee, k = sampled ?? columns.length;
		const most = (key) => this.#columns.map(({ law }) => law[key]).sort((a, b) => Number(minus(a, b)[0])).slice(-k);
		demand(!minus(most("epsilon").reduce(plus), fraction(epsilon))[0], "the epsilons do not add up");
		const [a, b] = most("kept").reduce(([a, b], [c, d]) => [a * c, b * d]);
		demand(all === null || within(a, b, fraction(all)), "longitudinal_epsilon is not kept");
		const questions = columns.map(({ name, question, domain }) => ({ name, question, domain }));
		Object.assign(this, { name, id, guarantee, language, questions, keepsState: report.states });
	}

	report(answers, options) {
		return this.explain(answers, options).message;
	}

	explain(answers, { state, others = [], nonce, words = secureWord, date = new Date().toJSON().slice(0, 10) } = {}) {
		const { valid_from, valid_until } = this.#survey, before = JSON.stringify(state ?? {}), seen = new Map();
		demand((valid_from ?? date) <= date && date <= (valid_until ?? date), "the survey is not open today");
		demand(!state || (this.keepsState && (state.survey ?? this.id) === this.id), "the state is none of this survey");
		const [codes, ...rest] = [answers, ...others].map((each) => this.#columns.map(({ read }, at) => read(each, at)));
		const word = (...place) => seen.get(`${place}`) ?? seen.set(`${place}`, words(...place)).get(`${place}`);
		const mark = nonce ? crypto.getRandomValues(new Uint8Array(8)) : [];
		const made = rest.map((each) => this.#make(each, JSON.parse(before), word, mark));
		return { ...this.#make(codes, state ?? {}, word, mark), others: made };
	}

	#make(codes, state, words, mark) {
		const { sampled, report } = this.#survey, most = Math.max(...this.#columns.map(({ size }) => size)), fields = [];
		const head = [68, 80, 82, 1, mark.length / 8, ...bytesOf(this.id), ...mark];
		const message = new Message(head.length + report.bytes + 4);
		message.set(head);
		let at = 8 * head.length;
		const put = (value, n) => {
			for (let i = 0; i < n; i++, at++)
				if (value.length ? (value[i >> 3] >> (i & 7)) & 1 : (BigInt(value) >> BigInt(i)) & 1n) setBit(message, at);
		};
		state.survey = this.id;
		state.reports = (state.reports ?? 0) + 1;
		if (sampled) state.drawn ??= choose(words, codes.length, sampled);
		state.kept ??= {};
		for (const number of state.drawn ?? codes.keys()) {
			const { name, law, widths, size } = this.#columns[number];
			const said = law.draw(codes[number], (stage, place) => words(stage, number, place), (state.kept[number] ??= {}));
			if (sampled) put(number, (codes.length - 1).toString(2).length);
			widths.forEach((n, i) => put(said[i], n));
			if (sampled) at += most - size;
			fields.push([name, said]);
		}
		let crc = ~0; // zlib's CRC-32
		for (const byte of message.subarray(0, -4))
			for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ ((crc ^ (byte >> i)) & 1 && 0xedb88320);
		new DataView(message.buffer).setInt32(message.length - 4, ~crc, true);
		return { message, fields };
	}
}
