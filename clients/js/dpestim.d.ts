export declare class SurveyError extends Error {}
export declare class Message extends Uint8Array {}
export declare class Survey {}
