/** A value as surveys write it: text, a small integer, a boolean, missing, or an object like {"date": "2026-11-26"}. */
export type Plain = string | number | boolean | null | { readonly [kind: string]: unknown };

/** What is asked in one column. */
export interface Question {
	/** The name of the column, or its place. */
	name: string | number;
	/** What the person is asked, if the survey says it. */
	question: string | null;
	domain:
		| { kind: "categories"; values: Plain[]; missing: boolean }
		/** Bounds are decimals, such as "17"; numbers beyond are clipped. */
		| { kind: "numbers"; low: string; high: string; unit: string | null; missing: boolean }
		| { kind: "keys"; keys: Plain[]; low: string; high: string };
}

/**
 * An answer to one question. Categories: one of `domain.values` (0.5 may stand for {"number": "0.5"}). Numbers: a
 * finite number, or null where a value may be missing. Keys: the pairs of key and value that the person
 * has, as an object, a Map or a list of pairs; no pair is an answer, too.
 */
export type Answer = Plain | bigint | Map<Plain, number> | [Plain, number][];

/** Answers by the names of the columns, or in their order. All columns need one, even where few are reported. */
export type Answers = { [name: string]: Answer } | Answer[];

/**
 * What a client keeps for one person between reports: plain JSON, at first {}. Store it after each report. It is as
 * secret as the answers are. If it is lost, or two reports are made from one copy, these cost more.
 */
export interface State {
	survey?: string;
	/** How many reports were made. */
	reports?: number;
	/** Which columns are reported, where these are drawn. */
	drawn?: number[];
	kept?: { [column: number]: unknown };
}

export interface Options {
	/** For surveys that keep a state (`keepsState`); it is changed. Without it the client keeps nothing. */
	state?: State;
	/** Add a random number, by which a collector counts a message that arrives twice only once. */
	nonce?: boolean;
	/** The day on which the survey must be open, such as "2026-11-26"; today if it is left out. */
	date?: string;
	/** For tests alone: the random word of a place. Whoever knows these words knows the answers. */
	words?: (stage: number, column: number, position: number) => bigint;
}

export interface Report {
	/** What is sent. */
	message: Message;
	/** What the message says: for each reported column its name and the fields of its law, as bits or integers. */
	fields: [name: string | number, said: (bigint | number | Uint8Array)[]][];
}

/** A report as bytes. */
export declare class Message extends Uint8Array {
	/** The same in base64url, for URLs and logs. */
	text(): string;
}

/** A survey that must not be answered, or an answer that it does not allow. The message names no answer. */
export declare class SurveyError extends Error {}

/** A survey that was checked. */
export declare class Survey {
	private constructor();
	/**
	 * Check a survey, as text or as JSON.parse reads it: format, version and id; that the constants of each law keep its
	 * epsilon, by exact arithmetic; that these epsilons add up to the promised one; that kept answers keep the promised
	 * longitudinal_epsilon. Throws a SurveyError otherwise.
	 * Needs Web Crypto, which browsers have on pages from https: or localhost.
	 */
	static load(json: string | object): Promise<Survey>;
	readonly name: string;
	/** The language of the promise's words, such as "de"; undefined: English. */
	readonly language?: string;
	/** 32 hexadecimal digits, which every message carries. */
	readonly id: string;
	/** The promise: epsilon as a fraction, and its words for the person who is asked. */
	readonly guarantee: {
		/** Of one report. */
		epsilon: string;
		/** Of all reports from one state, of answers that never change; null: clients keep nothing, or there is no bound. */
		longitudinal_epsilon: string | null;
		model: "local";
		text: string;
		relaxation: null;
		relaxed_epsilon: null;
	};
	readonly questions: Question[];
	/** Whether clients keep a state between reports. */
	readonly keepsState: boolean;
	/** Randomise the answers of one person. Nothing is drawn where a SurveyError is thrown. */
	report(answers: Answers, options?: Options): Message;
	/**
	 * The same, and what the report would have been for other answers, drawn with the same random words: to show the
	 * person how little the report tells. Send `message` and nothing else.
	 */
	explain(answers: Answers, options?: Options & { others?: Answers[] }): Report & { others: Report[] };
}
