import { plainSchema } from '../../src/contract/plain-schema.ts'
import { manifestSchema } from '../../src/skills/manifest/manifest.ts'
import { limitsText, schemaText, type DocumentedSchema } from './schema-text.ts'

/** Generates docs/manifest_schema.md from the schema that the server checks manifests with. */
export function manifestPage(): string {
  const whole: DocumentedSchema = plainSchema(manifestSchema)
  return `${intro}\n${sections('', whole).join('\n')}`
}

const intro = `# The manifest of a skill
<!-- Written by \`npm run docs:reference\` from src/skills/manifest/manifest.ts: change the descriptions there. -->

A manifest is one JSON object of at most 128 kB. Unknown fields are refused. Bold fields are required; the others have a default or may be
absent. \`GET /v1/skills/schema\` returns the same as JSON Schema, for editors and generators; [skills.md](skills.md) has a complete example.
Registration checks more than the schema can say, such as templates that refer to later steps, or an \`activation\` by which no cue can score, and reports all errors at once.
`

/** A table for each object: its own fields, then the fields of the objects in it. */
function sections(path: string, schema: DocumentedSchema): string[] {
  const { properties = {}, required = [] } = schema
  const rows = Object.entries(properties).map(([name, field]) => row(name, field, required.includes(name)))
  const heading = path === '' ? '## Fields' : `## \`${path}\``
  const own = [heading, '', '| field | type | meaning |', '| --- | --- | --- |', ...rows, '']
  const inner = Object.entries(properties).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`
    if (field.properties) return sections(at, field)
    return field.items?.properties ? sections(`${at}[]`, field.items) : []
  })
  return [...own, ...inner]
}

function row(name: string, field: DocumentedSchema, required: boolean): string {
  const type = field.properties ? 'object' : field.items?.properties ? 'object[]' : schemaText(field)
  const { default: standard, ...limits } = field
  const isEmpty = typeof standard === 'object' && Object.keys(standard ?? {}).length === 0
  const meaning = [field.description, sentence(limitsText(isEmpty ? limits : field))].filter(Boolean).join(' ')
  return `| ${required ? `**\`${name}\`**` : `\`${name}\``} | ${code(type)} | ${cell(meaning)} |`
}

const sentence = (text: string): string => (text === '' ? '' : `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`)
const cell = (text: string): string => text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ')
const code = (text: string): string => `\`${cell(text)}\``
