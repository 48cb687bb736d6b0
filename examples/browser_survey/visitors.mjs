/**
 * Visitors without a browser: reads {survey, visitors} from standard input and writes one message a line. A visitor is
 * {answers, key}: a key (for tests alone) fixes the random words. Every hundredth visitor looks at what the page shows.
 */
import { readFileSync } from "node:fs";
import { Survey } from "../../clients/js/dpestim.mjs";
import { wordsOf } from "../../clients/js/test/check.mjs";
import { prepare } from "./page.mjs";

const { survey: given, visitors } = JSON.parse(readFileSync(0, "utf8"));
const survey = await Survey.load(given);
const lines = visitors.map(({ answers, key }, number) => {
	const options = { nonce: true, ...(key ? { words: wordsOf(key) } : {}) };
	if (number % 100) return survey.report(answers, options).text();
	const { message, parts } = prepare(survey, given.columns, answers, options);
	if (!parts.every(({ says, instead }) => says && instead.length)) throw new Error("the page shows nothing");
	return message.text();
});
process.stdout.write(lines.join("\n"));
