import type { Action } from '../../../contract/action.ts'
import type { Outcome } from '../../../contract/event-record.ts'
import type { EntryKind, LogEntry } from '../../../contract/log-entry.ts'
import { addedCost } from '../../../traces/usage.ts'
import { brief } from '../../../traces/entries/sentences.ts'
import type { Activity } from '../contract/activity.ts'

/** The kinds of entries that the words of a trace are made from. */
export const spoken: readonly EntryKind[] = [
  'effect-started',
  'effect-ended',
  'reply-sent',
  'approval-requested',
  'model-called',
  'event-ended',
  'settings-changed',
]

const MOST_ACTS = 3
const MOST_VALUE = 60
/** Verbs that tools are named by. The past of others ends in -ed. */
const verbs =
  'add allow approve archive assign ban block book cancel charge close create delete deny disable email enable escalate forward label lift lock mark merge move ' +
  'notify open pay post publish refund remove rename reopen reply report request restart revoke schedule scale ship start stop suspend tag transfer unblock unlock update'
const past = new Map(
  Object.entries({
    ...Object.fromEntries(verbs.split(' ').map((verb) => [verb, pastOf(verb)])),
    get: 'read',
    read: 'read',
    write: 'wrote',
    send: 'sent',
    set: 'set',
    put: 'put',
    find: 'found',
    run: 'ran',
    search: 'searched',
    list: 'listed',
  }),
)

function pastOf(verb: string): string {
  if (verb.endsWith('e')) return `${verb}d`
  if (/[^aeiou]y$/.test(verb)) return `${verb.slice(0, -1)}ied`
  return /^(?:ban|ship|stop|tag)$/.test(verb) ? `${verb}${verb.at(-1)}ed` : `${verb}ed`
}

/** `http.block` of an address is `blocked 203.0.113.9`; `lookup` is `called lookup`. */
function actText(tool: string, input: unknown): string {
  const [first = '', ...others] = (tool.split('.').at(-1) ?? tool).split(/[_-]/)
  const verb = past.get(first.toLowerCase())
  const did = verb === undefined ? `called ${tool}` : [verb, ...others].join(' ')
  const value = Object.values(typeof input === 'object' && input !== null ? input : { input }).find(
    (one) => (typeof one === 'string' && one !== '') || typeof one === 'number',
  )
  return value === undefined ? did : `${did} ${cut(String(value))}`
}

const cut = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > MOST_VALUE ? `${line.slice(0, MOST_VALUE)}…` : line
}

/** The acts, each in words, in the order of the log. */
function actsOf(entries: readonly LogEntry[]): string[] {
  const ends = new Map(entries.flatMap((one) => (one.kind === 'effect-ended' ? [[one.effect_id, one] as const] : [])))
  return entries.flatMap((entry) => {
    if (entry.kind === 'effect-started') {
      const status = ends.get(entry.effect_id)?.status
      return [`${actText(entry.tool, entry.input)}${status === 'failed' || status === 'unknown' ? ` (${status})` : ''}`]
    }
    if (entry.kind === 'effect-ended' && entry.input !== undefined) return [`${actText(entry.tool, entry.input)} (done before)`]
    if (entry.kind === 'reply-sent') return [`replied “${cut(entry.content)}”`]
    if (entry.kind === 'approval-requested') return [`asked a person about ${cut(brief(entry['skill_id']))}`]
    if (entry.kind === 'settings-changed') return [`${cut(entry.by)} changed ${Object.keys(entry.patch).join(', ')}`]
    return []
  })
}

type Decided = Pick<Activity, 'decided_by'> & { else: string }
const by = (who: NonNullable<Activity['decided_by']>['by'], said: string, name: string | null = null): Decided => ({
  decided_by: { by: who, name },
  else: said,
})

/** The decider, and the words for where nothing was done. */
function decidedBy(outcome: Outcome): Decided {
  switch (outcome.by) {
    case 'filter':
      return by('filter', 'left alone: no filter passed it')
    case 'perceive':
      return by('nobody', 'joined the context')
    case 'turn':
      return outcome.idle ? by('nobody', `left alone: ${outcome.why ?? 'no agent acted on it'}`) : by('turn', turnText(outcome.result))
    case 'reflex':
      return by('reflex', actionText(outcome.action), outcome.reflex_id)
    case 'decision':
      return by('decision', actionText(outcome.action), outcome.model ?? null)
    case 'pull':
      return by('nobody', 'acknowledged by a consumer')
    case 'cancel':
      return by('person', `cancelled: ${cut(outcome.reason)}`)
    case 'failure':
      return by('nobody', `failed: ${cut(outcome.reason)}`)
    default:
      return { decided_by: null, else: '' }
  }
}

/** An action that no entry tells: it was done before, or has no effect. */
function actionText(action: Action | undefined): string {
  if (action === undefined) return 'decided'
  if (action.action_type === 'call_tool') return `${actText(action.tool, action.args)} (done before)`
  if (action.action_type === 'ignore') return `ignored: ${cut(action.reason)}`
  return action.action_type === 'run_skill' ? `ran ${action.skill_id}` : action.action_type.replaceAll('_', ' ')
}

const turnText = (result: unknown): string =>
  result === null ? 'decided to do nothing' : result === undefined ? 'considered it' : `answered ${cut(brief(result))}`

/** A trace in words, from entries of these kinds. `whole`: what it is called without any. */
export function inWords(entries: readonly LogEntry[], whole: string): Pick<Activity, 'words' | 'decided_by' | 'cost_usd'> {
  const outcomes = entries.flatMap((entry) => (entry.kind === 'event-ended' ? [decidedBy(entry.outcome)] : []))
  const failure = entries.findLast((entry) => entry.kind === 'event-ended' && entry.outcome.by === 'failure')
  const acts = actsOf(entries)
  const end = outcomes.find(({ decided_by }) => decided_by?.name !== null) ?? outcomes.at(-1)
  const said = [...acts.slice(0, MOST_ACTS), ...(acts.length > MOST_ACTS ? [`${acts.length - MOST_ACTS} more`] : [])]
  if (failure && end && said.length > 0) said.push(end.else)
  const cost_usd = entries.reduce<number | null>(
    (sum, entry) => (entry.kind === 'model-called' ? addedCost(sum, entry.usage.cost_usd) : sum),
    0,
  )
  return { words: said.join(', ') || end?.else || whole, decided_by: end?.decided_by ?? null, cost_usd }
}
