import { wrap } from '../lib/text.ts'
import { whenFunctions, whenIterations, whenWindows } from '../../src/contract/settings/when.ts'
import { defaultSettings, settingFields } from '../../src/contract/settings/settings.ts'
import { limitsText, schemaText, type DocumentedSchema } from './schema-text.ts'
import { plainSchema } from '../../src/contract/plain-schema.ts'

type Described = { description?: string; examples?: unknown[] }

/** Generates docs/settings.md from the schema that the server checks settings with. */
export function settingsPage(): string {
  const names = Object.keys(settingFields)
  return `${intro}\n${names.map(row).join('\n')}\n${names.map(section).join('')}\n${when}`
}

const intro = `# Settings
<!-- Written by \`npm run docs:reference\` from src/contract/settings/settings.ts: change the descriptions there. -->

A scope's settings decide which agent serves it, when the agent thinks, and what it may use.
They are changed by a merge patch, by a key with the role \`operator\`, and hold from the next event on:

\`\`\`sh
curl -X PATCH -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  "$URL/v1/scopes/inbox" -d '{"max_attempts": 5, "when": null}'
\`\`\`

Only the named settings change; \`null\` resets one to its default. An agent may define its own
defaults (\`settings\` in \`defineAgent\`), which replace those of this page. An invalid patch changes
nothing: the response is a 400 that lists the errors. \`GET /v1/scopes/SCOPE\` shows the current
settings, and \`GET /v1/settings/schema\` the JSON Schema of all of them, with their help, for editors and forms.
All settings of a scope together are at most 64 kB.

| setting | default |
| --- | --- |`

const row = (name: string): string => `| [\`${name}\`](#${name}) | ${defaultOf(name)} |`

const standard: Partial<Record<string, unknown>> = defaultSettings
const defaultOf = (name: string): string => (name in standard ? `\`${JSON.stringify(standard[name])}\`` : 'not set')

function section(name: string): string {
  const schema: (DocumentedSchema & Described) | undefined = settingFields[name] && plainSchema(settingFields[name])
  if (schema === undefined) return ''
  const { description = '', examples = [] } = schema
  const example = examples[0] ?? standard[name]
  return `
## \`${name}\`
${wrap(description, MOST_COLUMNS).join('\n')}

${typeOf(schema)}

\`\`\`json
${JSON.stringify({ [name]: example })}
\`\`\`
`
}

/**
 * A one-line type is inlined in the text; a type with fields becomes a block that explains each
 * field.
 */
function typeOf(schema: DocumentedSchema): string {
  const text = schemaText(schema)
  const limits = limitsText(schema)
  return text.includes('\n')
    ? `Type${limits ? ` (${limits})` : ''}:\n\n\`\`\`ts\n${text}\n\`\`\``
    : `Type: \`${text}\`${limits ? `, ${limits}` : ''}.`
}

const MOST_COLUMNS = 100

const windows = Object.entries(whenWindows).map(([name, seconds]) => `\`${name}\` (${seconds} s)`)
const others = whenFunctions.filter((name) => !whenIterations.some((iteration) => iteration === name))

const when = `## What \`when\` may say
A CEL expression that is true or false. It is checked when it is set.

| name | type | meaning |
| --- | --- | --- |
| \`total\` | int | events in the context |
| \`by_type["TYPE"]\` | int | those of one type; 0 where none came |
| \`by_source["SOURCE"]\` | int | those from one source; 0 where none came |
| \`WINDOW.total\`, \`WINDOW.by_type\`, \`WINDOW.by_source\` | | the same of the latest events only |

Windows, by the events' own timestamps: ${windows.join(', ')}.

Operators: \`== != < <= > >= && || ! + - * / %\` and \`? :\`. Functions: ${code(others)}.
Over the names of a map: ${code(whenIterations)}, none within another.

\`\`\`
last_1m.total >= 3
by_type["timer.tick"] > 0 || last_10s.by_source["alice"] >= 2
by_source.exists(source, source.startsWith("team-") && by_source[source] > 10)
\`\`\`
`

function code(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ')
}
