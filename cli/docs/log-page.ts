import { families, type Family } from '../../src/features/statistics/contract/statistics.ts'
import { counts } from '../../src/traces/entries/counts.ts'
import { byName } from '../../src/traces/entries/table.ts'

/** Generates docs/log.md from the table of entry kinds. */
export function logPage(): string {
  const kinds = Array.from(byName, ([kind, { means, span, notices = {} }]) => {
    const called = Object.keys(notices).map((type) => `\`${type}\``)
    return `| \`${kind}\` | ${means} | ${span} | ${called.join(', ')} |`
  })
  return `${intro}\n${kinds.join('\n')}\n\n${numbers}\n${families.map(section).join('')}`
}

const intro = `# The log of a scope
<!-- Written by \`npm run docs:reference\` from src/traces/entries/: change the texts there. -->

Each scope keeps a log: what happened, in order of \`seq\`, in the transaction of the change that it records.
\`GET /v1/scopes/SCOPE/log\` has the entries, \`reflex scope tail\` and the dashboard follow them, and sockets and
server-sent events carry them.

Every entry has \`seq\`, \`at\`, \`kind\`, \`trace_id\`, \`span_id\`, \`parent_id\`, \`event_ids\` and \`duration_ms\`; the
fields of its kind follow. Spans ([observability.md](observability.md)), statistics ([stats.md](stats.md)) and
notices ([webhooks.md](webhooks.md)) are computed from the log. A later version may add kinds and fields.

## Kinds

| kind | meaning | span | notices |
| --- | --- | --- | --- |`

const numbers = `## Numbers
The entries are counted in these numbers. The metrics of \`GET /v1/stats\` are computed from them; the last column is
the name in \`GET /metrics\`.
`

const titles: Record<Family, string> = {
  scope: 'Of a scope',
  reflex: 'Of a reflex',
  skill: 'Of a skill',
  tool: 'Of a tool',
  model: 'Of a model',
}

function section(family: Family): string {
  const prefix = family === 'scope' ? 'reflex_' : `reflex_${family}_`
  const rows = Object.entries<{ says: string; exposed?: string }>(counts[family]).map(
    ([name, { says, exposed }]) => `| \`${name}\` | ${says} | ${exposed ? `\`${prefix}${exposed}_total\`` : ''} |`,
  )
  return `\n### ${titles[family]}\n\n| number | meaning | exposed as |\n| --- | --- | --- |\n${rows.join('\n')}\n`
}
