import { expect, test } from 'vitest'
import { ReflexVersions } from '../../../src/engine/reflexes/versions.ts'
import type { Settings } from '../../../src/contract/settings/settings.ts'

const nothing = { read: <Value>(_key: string, standard: Value): Value => standard } as ConstructorParameters<typeof ReflexVersions>[0]
const settings = () => ({ paused: false, reflexes: [{ id: 'greet' }, { id: 'block' }] }) as unknown as Settings
const offBy = (variable?: string) =>
  new ReflexVersions(nothing, 'shop', settings, variable).links.map(({ absent }) =>
    absent?.reason === 'suspended' ? absent.detail : undefined,
  )

test('the deployment switches reflexes off in all scopes, by their ids or all of them', () => {
  const why = 'REFLEX_REFLEXES_OFF of the deployment names it'
  expect(offBy()).toEqual([undefined, undefined])
  expect(offBy('')).toEqual([undefined, undefined])
  expect(offBy('other, block')).toEqual([undefined, why])
  expect(offBy('*')).toEqual([why, why])
})
