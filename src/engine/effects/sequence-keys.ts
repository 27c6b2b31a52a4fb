const SEQUENCE = 'sequence:'

/** The key of the job of a sequence, by the log entry of its firing. */
export const sequenceKey = (log_seq: number): string => `${SEQUENCE}${log_seq}`
/** The owner of the journal rows of an act of a sequence. */
export const actOwner = (key: string, place: number): string => `${key}:${place}`
export const isOfSequence = (owner: string): boolean => owner.startsWith(SEQUENCE)
