/** The page of a survey: it asks, shows what would leave the browser, sends that, and shows the estimates. */
import { Survey } from "../../clients/js/dpestim.mjs";

/** Other answers to compare with: each question with each other category, or with the ends of its bounds. */
function othersOf(survey, answers) {
	return survey.questions.flatMap(({ name, domain }) => {
		const values = domain.values ?? [Number(domain.low), Number(domain.high)];
		return values.filter((value) => value !== answers[name]).map((value) => (
			{ name, value, answers: { ...answers, [name]: value } }));
	});
}

/** What one question's part of a report says, in words. */
function words({ domain, fields }, said) {
	if (domain.kind === "categories") return `“${domain.values[Number(said[0])]}”`;
	return `the number ${said[0]} of 0 to ${Number(fields[0].below) - 1}`;
}

/**
 * Make the report of these answers. Returns its message, and for each question of the report what it says, and what it
 * would have said for other answers; for the questions that were not drawn nothing leaves the browser.
 */
export function prepare(survey, columns, answers, options = {}) {
	const others = othersOf(survey, answers);
	const report = survey.explain(answers, { nonce: true, ...options, others: others.map((other) => other.answers) });
	const column = (name) => columns.find((own) => own.name === name);
	const parts = report.fields.map(([name, said]) => ({
		name,
		answer: answers[name],
		says: words(column(name), said),
		instead: others.flatMap((other, number) => {
			if (other.name !== name) return [];
			const [, otherwise] = report.others[number].fields.find((field) => field[0] === name);
			return [{ answer: other.value, says: words(column(name), otherwise) }];
		}),
	}));
	return { message: report.message, parts };
}

// ---- the page

const make = (tag, text = "", attributes = {}) => {
	const node = Object.assign(document.createElement(tag), attributes);
	node.append(text);
	return node;
};
const at = (id) => document.getElementById(id);

function ask(survey) {
	for (const { name, question, domain } of survey.questions) {
		const field = make("p", make("label", `${question} `));
		const input = domain.values ? make("select", "", { name }) : make("input", "", {
			name, type: "number", min: domain.low, max: domain.high, step: "any", required: true });
		if (domain.values) { // (no answer is there before the person gives one)
			input.required = true;
			const options = domain.values.map((value) => make("option", String(value)));
			input.append(make("option", "choose", { value: "" }), ...options);
		}
		field.firstChild.append(input);
		at("questions").append(field);
	}
}

function read(survey) {
	const form = new FormData(at("form"));
	return Object.fromEntries(survey.questions.map(({ name, domain }) => {
		const given = form.get(name);
		return [name, domain.values ? domain.values.find((value) => String(value) === given) : Number(given)];
	}));
}

function show(survey, { message, parts }) {
	const lines = parts.flatMap(({ name, answer, says, instead }) => [
		make("h3", survey.questions.find((question) => question.name === name).question),
		make("p", `Your answer: ${answer}. The report says: ${says}.`),
		make("p", "With the same throw of the dice, other answers would have been reported like this:"),
		make("ul", "", { className: "instead" }),
		...instead.map((other) => make("li", `${other.answer}: the report would say ${other.says}.`)),
	]);
	const silent = survey.questions.filter(({ name }) => !parts.some((part) => part.name === name));
	if (silent.length) lines.push(make("p", `Nothing is sent about: ${silent.map(({ question }) => question).join(" ")}`));
	lines.push(
		make("p", "This is the whole message: the number of the survey, a random number by which a message that comes "
			+ "twice is known, the report, and a checksum. The browser adds what it sends to every site, such as its address."),
		make("code", message.text()));
	at("report").replaceChildren(...lines);
	at("send").disabled = false;
}

function draw(survey, { n, questions }) {
	at("n").textContent = `${n} reports so far.`;
	at("estimates").replaceChildren(...survey.questions.flatMap(({ name, question, domain }) => [
		make("h3", question),
		...(questions[name] ?? []).map(({ of, estimate, error }) => {
			if (estimate === null || error === null) return make("p", `${of}: too few reports`);
			const scale = domain.values ? 1 : Number(domain.high);
			const place = (x) => `${100 * Math.min(Math.max(x / scale, 0), 1)}%`;
			const text = domain.values ? `${(100 * estimate).toFixed(1)} ± ${(200 * error).toFixed(1)} %`
				: `${estimate.toFixed(2)} ± ${(2 * error).toFixed(2)}`;
			const bar = make("div", "", { className: "bar" }), full = make("i"), line = make("b");
			full.style.width = place(estimate);
			line.style.left = place(estimate - 2 * error);
			line.style.right = `calc(100% - ${place(estimate + 2 * error)})`;
			bar.append(full, line);
			const row = make("p", `${of}: ${text}`);
			row.append(bar);
			return row;
		}),
	]));
}

async function start() {
	const text = await (await fetch("/survey.json")).text();
	const survey = await Survey.load(text), { columns } = JSON.parse(text);
	at("name").textContent = survey.name;
	const { text: promise, epsilon } = survey.guarantee;
	at("promise").textContent = `${promise} This browser has checked that a report keeps epsilon = ${epsilon}.`;
	ask(survey);
	const watch = async () => draw(survey, await (await fetch("/estimates")).json());
	let report = null;
	const fresh = () => show(survey, (report ??= prepare(survey, columns, read(survey))));
	at("form").addEventListener("submit", (event) => {
		event.preventDefault();
		fresh();
		at("form").querySelectorAll("input, select, button").forEach((node) => (node.disabled = true)); // one draw a person
	});
	const send = async () => {
		at("send").disabled = true;
		const sending = { method: "POST", body: report.message, credentials: "omit" };
		const answer = await fetch("/reports", sending).catch(() => ({ ok: false })); // (there may be no network)
		at("sent").textContent = answer.ok ? "The report was sent. Thank you." : "The report was not taken. Try again.";
		at("send").disabled = answer.ok;
		await watch();
	};
	at("send").addEventListener("click", send);
	if (location.hash === "#demo") { // fill in the page and send it: for presentations, and for the test
		at("form").querySelectorAll("input").forEach((input) => (input.value = input.max / 2));
		at("form").querySelectorAll("select").forEach((select) => (select.selectedIndex = 1));
		fresh();
		await send();
		document.body.dataset.demo = "done";
	}
	await watch();
	setInterval(watch, 2000);
}

if (typeof document !== "undefined")
	start().catch((error) => (at("sent").textContent = `Do not answer: ${error.message}`));
