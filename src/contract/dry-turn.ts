/** An act that a dry turn recorded. `name`: the tool, the skill or the type of the event. */
export type DryAct = { kind: 'tool' | 'reply' | 'skill' | 'emit'; name: string; input: unknown }
/** Ranges of `seq` in the inbox. */
type Places = [number, number][]
/** The input of a turn at the moment of a decision. Times in ms. */
export type DryView = {
  considered: Places
  saw: { seqs: Places; scratch: unknown; created_at: number; last_action_at: number | null }
  /** The time of the decision, from which its clock runs. */
  decided_at: number
}
/**
 * `unanswerable`: the trigger used something that would have acted, such as a binding. `gone`:
 * retention has deleted an event that it needs.
 */
export type DryEnd = 'result' | 'none' | 'failed' | 'timeout' | 'unanswerable' | 'gone' | 'refused' | 'waiting' | 'interrupted'
