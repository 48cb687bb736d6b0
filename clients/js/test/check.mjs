/**
 * Tests of dpestim.mjs. `node check.mjs` compares reports with the test vectors in ../vectors, which Python has made;
 * `node check.mjs -` reads a plan from standard input, as tests/unit/collection/test_js_client.py writes it.
 */
import { createCipheriv } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = new URL(".", import.meta.url);

/** The words of a key as dpestim/rng.py has them, for the first row of a call; `asked` counts them. */
export function wordsOf(key) {
	const cipher = createCipheriv("aes-256-ecb", Buffer.from(key, "hex"), null).setAutoPadding(false);
	const words = (stage, column, position) => {
		const counter = Buffer.alloc(16);
		counter.writeBigUInt64BE((BigInt(stage) << 56n) | (BigInt(column) << 32n), 0);
		counter.writeBigUInt64BE(BigInt(Math.floor(position / 2)) + 2n, 8);
		words.asked++;
		return cipher.update(counter).readBigUInt64LE(8 * (position % 2));
	};
	words.asked = 0;
	return words;
}

/** { "file: name": how many reports differ } of all vectors, or of those up to the first survey where any differs. */
export async function compare({ Survey }, { untilWrong = false } = {}, folder = new URL("../vectors/", here)) {
	const found = {};
	for (const file of readdirSync(folder).sort()) {
		for (const [number, { survey, records, kept = [] }] of JSON.parse(readFileSync(new URL(file, folder))).entries()) {
			const client = await Survey.load(survey), differ = ([key, answers, text], state) =>
				client.report(answers, { words: wordsOf(key), date: "2026-12-01", state }).text() !== text;
			let state = {}, wrong = records.filter((record) => differ(record)).length;
			for (const record of kept) {
				wrong += differ(record, state);
				state = JSON.parse(JSON.stringify(state)); // (as a page stores it)
			}
			found[`${file} ${number}`] = [records.length + kept.length, wrong];
			if (wrong && untilWrong) return found;
		}
	}
	return found;
}

/** The payloads of n reports of the same answers, with words of its own, as base64. */
async function sample({ Survey }, { survey, answers, n }) {
	const client = await Survey.load(survey), size = survey.report.bytes, out = new Uint8Array(n * size);
	for (let i = 0; i < n; i++) out.set(client.report(answers).subarray(21, 21 + size), i * size);
	return Buffer.from(out).toString("base64");
}

/** What was said against each survey, or against answers to it before any word was asked for; null: nothing. */
async function refused({ Survey, SurveyError }, { survey, answers, options }) {
	const words = wordsOf("00".repeat(32));
	try {
		const client = await Survey.load(survey);
		if (answers) client.report(answers, { words, ...options });
		return null;
	} catch (error) {
		return `${error instanceof SurveyError && !words.asked ? "" : "not as a SurveyError: "}${error.message}`;
	}
}

async function each(list, task) {
	const out = [];
	for (const part of list ?? []) out.push(await task(part));
	return out;
}

const isProgram = process.argv[1] === fileURLToPath(import.meta.url);
if (isProgram && process.argv[2] === "-") {
	const runs = JSON.parse(readFileSync(0, "utf8"));
	const found = await each(runs, async ({ module, vectors, samples, surveys }) => {
		const loaded = await import(module ? pathToFileURL(module) : new URL("../dpestim.mjs", here));
		return {
			vectors: vectors ? await compare(loaded, vectors) : null,
			samples: await each(samples, (request) => sample(loaded, request)),
			surveys: await each(surveys, (request) => refused(loaded, request)),
		};
	});
	process.stdout.write(JSON.stringify(found));
} else if (isProgram) {
	const found = Object.entries(await compare(await import(new URL("../dpestim.mjs", here))));
	const wrong = found.filter(([, [, n]]) => n);
	const total = found.reduce((sum, [, [n]]) => sum + n, 0);
	console.log(`${total} reports of ${found.length} surveys; ${wrong.length} surveys differ`);
	wrong.forEach(([name, [n, bad]]) => console.log(`${name}: ${bad} of ${n}`));
	process.exitCode = wrong.length ? 1 : 0;
}
