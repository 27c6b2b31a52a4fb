import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkManifest } from '../../../src/skills/check.ts'
import { hashManifest, parseManifest } from '../../../src/skills/manifest/manifest.ts'
import { deployJson } from './deploy-manifest.ts'
import { assertProperty } from '../../support/property.ts'

type Place = (string | number)[]

/** Every place of a value, the value itself left out. */
function placesOf(value: unknown, at: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const place = [...at, Array.isArray(value) ? Number(key) : key]
    return [place, ...placesOf(inner, place)]
  })
}

const written = ([first = '', ...rest]: Place): string =>
  rest.reduce<string>((path, key) => (typeof key === 'number' ? `${path}[${key}]` : `${path}.${key}`), String(first))

function replaced(place: Place, value: unknown): unknown {
  const copy: unknown = structuredClone(deployJson)
  let parent = copy as Record<string | number, unknown>
  for (const key of place.slice(0, -1)) parent = parent[key] as Record<string | number, unknown>
  const last = place.at(-1) ?? ''
  if (value === undefined) delete parent[last]
  else parent[last] = value
  return copy
}

const places = placesOf(deployJson)
/** As it comes from outside, from JSON; undefined leaves the place out. */
const anyValue = fc.option(
  fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' })).map((value) => JSON.parse(JSON.stringify(value)) as unknown),
  { nil: undefined },
)

/** Flaws in the verdict on the manifest; normally none. */
function flawsOf(place: Place, value: unknown): string[] {
  const parsed = parseManifest(replaced(place, value))
  if (!parsed.ok) {
    const near = (path: string) => written(place).startsWith(path) || path.startsWith(written(place))
    return parsed.errors.flatMap(({ path, message }) => (near(path) && message !== '' ? [] : [`refused for ${path}: ${message}`]))
  }
  const again = parseManifest(JSON.parse(JSON.stringify(parsed.manifest)))
  const checked = checkManifest(parsed.manifest, { tools: null, probes: ['deploy_window', 'risk_scan'] })
  const mute = checked.ok ? [] : checked.errors.filter(({ path, message }) => path === '' || message === '')
  return [
    ...(JSON.stringify(again) === JSON.stringify(parsed) ? [] : ['it is not read as it was written']),
    ...mute.map(({ path }) => path),
  ]
}

test('whatever stands at a place of a manifest, it is taken as a whole or refused, naming that place or one around it', () => {
  const property = fc.property(fc.constantFrom(...places), anyValue, (place, value) => {
    expect(flawsOf(place, value)).toEqual([])
  })
  assertProperty('skills/manifest-fuzz: a place', property, { numRuns: 2000 })
})

test('any change of a manifest that is taken changes its hash', async () => {
  const before = parseManifest(deployJson)
  if (!before.ok) throw new Error('the example is refused')
  const hash = await hashManifest(before.manifest)
  const property = fc.asyncProperty(fc.constantFrom(...places), anyValue, async (place, value) => {
    const parsed = parseManifest(replaced(place, value))
    if (!parsed.ok) return
    const same = JSON.stringify(parsed.manifest) === JSON.stringify(before.manifest)
    expect((await hashManifest(parsed.manifest)) === hash).toBe(same)
  })
  await assertProperty('skills/manifest-fuzz: a whole', property, { numRuns: 1000 })
})
