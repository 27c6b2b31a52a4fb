import { createHash } from 'node:crypto'

/** A number in [0, 1) that depends on the text alone: the same in a replay. */
export const unitHash = (text: string): number =>
  Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, 12), 16) / 2 ** 48

/**
 * True if the decision about this event is audited. `salt`, for example the hash of the version,
 * makes the draws of two versions independent.
 */
export const isAudited = (event_id: string, { share, salt }: { share: number; salt: string }): boolean =>
  unitHash(`${salt}\0${event_id}`) < share
