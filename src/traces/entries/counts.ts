import type { Family } from '../../features/statistics/contract/statistics.ts'

/** `says`: its meaning. `exposed`: its name in `GET /metrics`, with `help` where that differs. */
type Count = { says: string; exposed?: string; help?: string }

const gate = {
  proposals: { says: 'Proposals that the gate decided on.' },
  clarifies: { says: 'Proposals that lacked slots.' },
  policy_denials: { says: 'Proposals that the policy denied.' },
  fallbacks: { says: 'Proposals that did not run successfully in a turn that ended with a result.' },
}
const decided = { says: 'Events decided by a reflex, without a model.' }
const saved = {
  saved_model_calls: { says: 'Model calls saved, by the average turn of the scope.' },
  saved_tokens: { says: 'Tokens saved.' },
  saved_cost_usd: { says: 'Money saved.' },
}
const left_alone = {
  left_alone: { says: 'Events that a reflex decided to leave alone.' },
  left_alone_audits: { says: 'Audits of such decisions, without those drawn for new values.' },
  left_alone_missed: { says: 'Such audits in which the slow path did something.' },
}
const measured = {
  turns: { says: 'Ended turns.' },
  turn_cost_usd: { says: 'Cost of the turns, without model calls whose price is unknown.' },
  turn_time_ms: { says: 'Sum of the durations of turns.' },
}

/** The numbers that log entries are counted in. `GET /metrics` has them in this order. */
export const counts = {
  scope: {
    accepted: { says: 'Accepted events.' },
    completed: { says: 'Completed events.' },
    ignored: { says: 'Ignored events.' },
    dead_lettered: { says: 'Events that became dead letters.' },
    cancelled: { says: 'Cancelled events.' },
    retried: { says: 'Attempts that failed and were retried.' },
    by_filter: { says: 'Events decided by a filter.' },
    by_perceive: { says: 'Events that joined the context without a turn.' },
    by_reflex: { says: 'Events decided by a reflex.' },
    by_decision: { says: 'Events decided by the decision model.' },
    by_turn: { says: 'Events decided by a turn, which asked a model or acted.' },
    by_condition: { says: 'Events that a turn left alone without a model or an act, such as those for which `when` does not hold.' },
    by_pull: { says: 'Events that an external consumer acknowledged.' },
    by_cancel: { says: 'Events that ended with a cancelled turn.' },
    by_failure: { says: 'Events that failed.' },
    turns: { ...measured.turns, exposed: 'turns' },
    turns_failed: { says: 'Turns that failed or timed out.', exposed: 'turns_failed' },
    turn_cost_usd: { ...measured.turn_cost_usd, exposed: 'turn_cost_usd', help: 'Cost of the turns.' },
    turn_time_ms: measured.turn_time_ms,
    refused: { says: 'Turns that were refused for lack of budget.' },
    ranked: { says: 'Turns with a bulletin in which a skill ran successfully.' },
    ranked_first: { says: 'Turns whose first card is a skill that ran successfully.' },
    model_calls: { says: 'Model calls.', exposed: 'model_calls' },
    model_failures: { says: 'Model calls that failed.', exposed: 'model_failures' },
    input_tokens: { says: 'Input tokens.', exposed: 'model_input_tokens' },
    output_tokens: { says: 'Output tokens.', exposed: 'model_output_tokens' },
    model_cost_usd: { says: 'Cost of the model calls, without those whose price is unknown.', exposed: 'model_cost_usd' },
    unpriced_calls: { says: 'Model calls whose price is unknown.', exposed: 'model_unpriced_calls' },
    effects: { says: 'Ended effects.', exposed: 'effects' },
    effects_failed: { says: 'Effects that failed, or whose outcome is unknown.', exposed: 'effects_failed' },
    decided: { ...decided, exposed: 'events_decided' },
    saved_model_calls: { ...saved.saved_model_calls, exposed: 'saved_model_calls', help: 'Model calls saved by reflexes.' },
    saved_tokens: { ...saved.saved_tokens, exposed: 'saved_tokens', help: 'Tokens saved by reflexes.' },
    saved_cost_usd: { ...saved.saved_cost_usd, exposed: 'saved_cost_usd', help: 'Money saved by reflexes.' },
    bulletins: { says: 'Bulletins of skills that turns showed to their model.', exposed: 'bulletins' },
    bulletin_tokens: { says: 'Tokens of these bulletins, by an estimate.', exposed: 'bulletin_tokens' },
    ...gate,
    policy_denials: { ...gate.policy_denials, exposed: 'policy_denials' },
    notices: { says: 'Notices to webhooks that were delivered or given up.', exposed: 'notices' },
    notices_failed: { says: 'Notices to webhooks that were given up.', exposed: 'notices_failed' },
    evictions: { says: 'Active reflexes that were demoted or suspended.', exposed: 'evictions' },
    lapses: { says: 'Certificates of reflexes that lapsed.' },
    near_budgets: { says: 'Budgets in money of which most was spent.' },
    fires: { says: 'Fires of active reflexes.' },
    audits: { says: 'Decisions of proven reflexes that the slow path repeated without effects.' },
    audits_disagreed: { says: 'Audits in which the slow path decided otherwise.' },
    corrections: { says: 'Decisions of reflexes that a turn or a person corrected.' },
    ...left_alone,
    skill_refusals: { says: 'Proposals refused before or after the gate.' },
    dry_turns: { says: 'Turns without effects, for audits and to ask again.' },
    dry_turn_cost_usd: { says: 'Cost of the dry turns, which is part of that of the model calls.' },
    replayed: { says: 'Decisions that a pinned replay compared.' },
    replayed_otherwise: { says: 'Decisions that a pinned replay decided otherwise.' },
  },
  reflex: {
    runs: { says: 'Runs, in shadow mode or not.', exposed: 'runs' },
    fires: { says: 'Fires, not in shadow mode.', exposed: 'fires' },
    errors: { says: 'Runs that failed, hit a limit or returned an invalid action.', exposed: 'errors' },
    decided: { ...decided, exposed: 'decided' },
    ...saved,
    shadow_fires: { says: 'Fires in shadow mode.' },
    overruled: { says: 'Actions that a turn or a person later undid.' },
    evictions: { says: 'Times it was demoted or suspended.' },
    audits: { says: 'Decisions that the slow path repeated without effects.' },
    audits_disagreed: { says: 'Audits in which the slow path decided otherwise.' },
    corrections: { says: 'Decisions that a turn or a person corrected.' },
    ...left_alone,
  },
  skill: {
    calls: { says: 'Started runs.', exposed: 'calls' },
    ok: { says: 'Successful runs.', exposed: 'succeeded' },
    failed: { says: 'Runs that failed.', exposed: 'failed' },
    ...gate,
    proposals: { ...gate.proposals, exposed: 'proposals' },
    fallbacks: { ...gate.fallbacks, exposed: 'fallbacks' },
    reused: { says: 'Proposals answered by the outputs of an earlier run.' },
    approvals: { says: 'Approvals requested.' },
    max_streak: { says: 'Longest series of failures without a success, in one scope.' },
    cost_usd: { says: 'Cost of the runs.' },
    ...measured,
  },
  tool: {
    calls: { says: 'Ended calls of the tool; those of all tools are `effects`.' },
    failed: { says: 'Calls of the tool that failed, or whose outcome is unknown.' },
  },
  model: {
    calls: { says: 'Calls of the model; those of all models are `model.calls`.' },
    failed: { says: 'Calls of the model that failed.' },
    input_tokens: { says: 'Input tokens of the model.' },
    output_tokens: { says: 'Output tokens of the model.' },
    cost_usd: { says: 'Cost of the calls of the model, without those whose price is unknown.' },
    unpriced_calls: { says: 'Calls of the model whose price is unknown.' },
  },
} as const satisfies Record<Family, Record<string, Count>>

/** Histograms have a count for each of their buckets. */
type Histogram = { scope: 'turn_ms' | 'reflex_us' | 'gate_us'; skill: 'turn_ms' | 'run_ms'; reflex: never; tool: never; model: never }
export type CountName<Of extends Family> = keyof (typeof counts)[Of] & string
export type Counts<Of extends Family> = { [Name in CountName<Of>]?: number } & { [Bucket in `${Histogram[Of]}.${number}`]: number }

/** The numbers of a family that `GET /metrics` has: their names there, and where they come from. */
export const exposedOf = (family: Family): { name: string; key: string; help: string }[] =>
  Object.entries<Count>(counts[family]).flatMap(([key, { says, exposed, help = says }]) => (exposed ? [{ name: exposed, key, help }] : []))
