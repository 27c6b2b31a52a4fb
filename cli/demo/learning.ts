import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import { LESSON_SENDER, type Lesson } from '../learning/lesson.ts'
import type { AuthLog } from './read-log.ts'

/** So many lines are sent to the scope that learns: the log's, and lines of further days. */
const LINES = 600
const LEARN_AFTER = [300]
const DAY_MS = 86_400_000
const ADDRESS = /\b(\d{1,3}\.\d{1,3}\.\d{1,3})\.(\d{1,3})\b/g
const ADDRESSES = 254

/**
 * The log again, for a scope without a reflex. Its agent calls the model about each line. A log
 * that is short is continued for further days, on which the attackers have other addresses.
 */
export function learningLesson({ events: lines }: Pick<AuthLog, 'events'>, firewall: { url: string; host: string }): Lesson {
  const days = Math.ceil(LINES / lines.length)
  const events = Array.from({ length: days }, (_, day) =>
    lines.map(({ id, line, host, timestamp }) => ({
      id: `day-${day + 1}-${id}`,
      type: 'log.line',
      source: `host:${host}`,
      host,
      line: line.replaceAll(ADDRESS, (_, network: string, last: string) => `${network}.${((Number(last) + day * 67) % ADDRESSES) + 1}`),
      timestamp: new Date(Date.parse(timestamp) - (days - 1 - day) * DAY_MS).toISOString(),
    })),
  ).flat()
  return { scope: 'demo/learning', settings: settings(firewall), events: events.slice(0, LINES), learn_after: LEARN_AFTER }
}

/** The instructions have a line for the offline model, which stands for a real one. */
const settings = ({ url, host }: { url: string; host: string }): SettingsPatch => ({
  agent: 'prompted',
  instructions: [
    'You watch the log of an SSH server. Block each address that guesses a password.',
    `offline: ${JSON.stringify({ contains: 'Failed password', call: 'http.block', input: { address: { after: ' from ' } } })}`,
  ].join('\n'),
  learning: { mode: 'auto', min_agreement: 0.95, audit_share: 0.02, trusted_sources: [LESSON_SENDER] },
  allowed_hosts: [host],
  http_tools: [
    {
      name: 'http.block',
      description: 'Blocks an address',
      method: 'POST',
      url: `${url}/block`,
      body: { address: '{{address}}' },
      idempotence_key: 'block:{{address}}',
    },
  ],
})
