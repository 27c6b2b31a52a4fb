import { count, counted, dollars, harmless, listed } from '../lib/text.ts'
import type { ReflexFigures } from './reflex-tally.ts'
import type { SkillTallies } from './skill-tally.ts'
import { FAILING_SCOPE } from './failing-scope.ts'
import type { Decision, DemoState } from './state.ts'

/** The results of a turn, in words. */
export function decided({ scope, status, blocked, why }: Decision): string {
  if (scope === FAILING_SCOPE) return `failed on purpose: ${shortened(why)}`
  if (status === 'none') return 'nothing to act on'
  if (status === 'result') return blocked.length > 0 ? `blocked ${listed(blocked, 3)}` : `acted: ${shortened(why)}`
  const again = status === 'failed' || status === 'timeout' ? '' : ', its events are retried'
  return `${status}${again}: ${shortened(why)}`
}

/** The results of a reflex in one line; null without one. */
export function reflexesLine(reflexes: Readonly<Record<string, ReflexFigures>>): string | null {
  const said = Object.entries(reflexes).map(([id, { fired, passed, troubled, mean_us }]) => {
    const failures = troubled > 0 ? ` (${count(troubled)} of them not by choice)` : ''
    return `${harmless(id)}: ${count(fired)} fired, ${count(passed)} passed${failures}, ${count(mean_us)} µs each`
  })
  return said.length === 0 ? null : said.join('; ')
}

/** All turns in one line. */
export function turnsLine(turns: DemoState['turns'], { smallest, largest }: DemoState['windows']): string {
  const parts = [`${count(turns.acted)} acted`, `${count(turns.none)} found nothing`]
  if (turns.failed > 0) parts.push(`${count(turns.failed)} failed`)
  if (turns.other > 0) parts.push(`${count(turns.other)} restarted`)
  return `${count(turns.started)}: ${parts.join(', ')}${largest > 0 ? `; windows of ${count(smallest)} to ${count(largest)} events` : ''}`
}

/** All model calls in one line. Offline answers are never presented as a model's. */
export function modelLine({ name, calls, failed, input_tokens, output_tokens, cost_usd }: DemoState['model']): string {
  const asked = `${counted(calls, 'call')}${failed > 0 ? ` (${count(failed)} failed)` : ''}`
  const tokens = counted(input_tokens + output_tokens, 'token')
  if (name === null || name === 'offline') return `offline stand-in; ${asked} (about ${tokens} with a real model)`
  return `${name}: ${asked}, ${tokens}, ${dollars(cost_usd)}`
}

export function effectsLine({ started, ok, failed, unknown, reused }: DemoState['effects']): string {
  const parts = [`${count(ok)} done`]
  if (failed + unknown > 0) parts.push(`${count(failed + unknown)} failed`)
  if (reused > 0) parts.push(`${count(reused)} answered from the journal`)
  return `${count(started)} started: ${parts.join(', ')}`
}

/** The results of skills in one line; null if none was proposed. */
export function skillsLine(skills: SkillTallies): string | null {
  const said = Object.entries(skills).map(([id, { ran, failed, refused, to_approve }]) => {
    const parts = [
      ...(ran > 0 ? [`${count(ran)} ran`] : []),
      ...(failed > 0 ? [`${count(failed)} failed`] : []),
      ...(refused > 0 ? [`${count(refused)} refused`] : []),
      ...(to_approve > 0 ? [`${count(to_approve)} to be approved`] : []),
    ]
    return `${harmless(id)}: ${parts.join(', ')}`
  })
  return said.length === 0 ? null : said.join('; ')
}

/** The number of blocked addresses, by decider. */
export function blockedLine({ reflex, turn }: { reflex: number; turn: number }): string {
  return `${counted(reflex + turn, 'address', 'addresses')}: ${count(reflex)} by a reflex, ${count(turn)} by the agent`
}

const INSTANT = /(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z/g
const SAME_DAY = /(\d{4})-(\d\d)-(\d\d) (\d\d:\d\d:\d\d) to \1-\2-\3 (\d\d:\d\d:\d\d)/g
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Shortens a reason to its first line, with times as in the log and without the year. */
export function shortened(reason: string): string {
  const [first = ''] = reason.split('\n')
  const spaced = harmless(first).replaceAll(INSTANT, '$1 $2')
  return spaced.replaceAll(SAME_DAY, (_, _year, month: string, day: string, from: string, to: string) => {
    const date = `${MONTHS[Number(month) - 1]} ${day.replace(/^0/, ' ')}`
    return from === to ? `${date} ${from}` : `${date} ${from} to ${to}`
  })
}
