import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { unstable_readConfig } from 'wrangler'
import { z } from 'zod'
import { decisionResponse } from '../../../src/contract/decision-answers.ts'
import { replayReport } from '../../../src/features/replay/contract/replay.ts'
import { settingsPatch } from '../../../src/contract/settings/settings.ts'
import { templates } from '../../../src/reflexes/templates/index.ts'
import { proposeSkillInput } from '../../../src/skills/asp/parse.ts'
import { manifestSchema } from '../../../src/skills/manifest/manifest.ts'
import { documented, type Block } from '../../support/documented.ts'

/** By the name in `<!-- schema: NAME -->`. */
const schemas: Record<string, z.ZodType> = {
  decision: decisionResponse,
  manifest: manifestSchema,
  proposal: proposeSkillInput,
  'reflex of a template': z.union(templates.map(({ name, params }) => z.looseObject({ template: z.literal(name), params }))),
  'replay report': replayReport,
}
const settings = new Set(Object.keys(settingsPatch.shape))

const json = [...(await documented('json')), ...(await documented('jsonc'))]
const toml = await documented('toml')
const placeOf = ({ page, line }: Block): string => `${page}:${line}`
const withoutComments = (code: string): string => code.replaceAll(/^ *\/\/.*$/gm, '')

/** The named schema of a block, or the schema of the settings if each of its fields is one. */
function schemaOf({ schema }: Block, value: unknown): z.ZodType | undefined {
  if (schema !== null) {
    const named = schemas[schema]
    if (!named) throw new Error(`there is no schema ${schema}`)
    return named
  }
  const fields = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []
  return fields.length > 0 && fields.every((field) => settings.has(field)) ? settingsPatch : undefined
}

describe('JSON in the documentation', () => {
  test.each(json.map((block) => [placeOf(block), block] as const))('%s is what it says', (_, block) => {
    const value: unknown = JSON.parse(withoutComments(block.code))
    const parsed = schemaOf(block, value)?.safeParse(value)
    expect(parsed?.error?.issues ?? []).toEqual([])
  })

  test('is checked against the schema of what it shows', () => {
    const checked = json.filter((block) => schemaOf(block, JSON.parse(withoutComments(block.code))) !== undefined)
    expect(new Set(checked.map(({ page }) => page))).toContain('docs/skills.md')
    expect(checked.length).toBeGreaterThan(40)
  })
})

test('docs/mcp.md shows the file that the example mounts', () => {
  expect(json.find(({ page }) => page === 'docs/mcp.md')?.code).toBe(readFileSync('examples/editor/.vscode/mcp.json', 'utf8'))
})

describe('TOML in the documentation', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'reflex-docs-'))
  const config = path.join(folder, 'wrangler.toml')
  afterEach(() => vi.restoreAllMocks())

  test.each(toml.map((block) => [placeOf(block), block] as const))('%s is a part of wrangler.toml', (_, { code }) => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    writeFileSync(config, `name = "reflex"\ncompatibility_date = "2026-08-15"\n\n${code}`)
    expect(() => unstable_readConfig({ config })).not.toThrow()
    expect(warned.mock.calls.flat()).toEqual([])
  })
})
