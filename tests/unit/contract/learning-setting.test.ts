import { expect, test } from 'vitest'
import { defaultLearning, effectiveLearning, mergeLearning } from '../../../src/features/learning/contract/setting.ts'
import { defaultSettings, mergeSettings, settingsPatch } from '../../../src/contract/settings/settings.ts'

test('learning is off unless it is set', () => {
  expect(defaultSettings.learning).toMatchObject({ mode: 'off', audit_share: 0.02 })
  expect(effectiveLearning([{}, {}])).toEqual(defaultLearning)
})

test('a patch of the setting changes only the fields it contains; null restores a default', () => {
  const set = mergeSettings({}, { learning: { mode: 'auto', window: 500 } })
  expect(effectiveLearning([set])).toEqual({ ...defaultLearning, mode: 'auto', window: 500 })
  expect(effectiveLearning([mergeSettings(set, { learning: { window: null } })])).toEqual({ ...defaultLearning, mode: 'auto' })
  expect(mergeLearning(set, { learning: null })).toEqual({ learning: undefined })
})

test('the scope overrides the setting of its agent, field by field', () => {
  expect(effectiveLearning([{ learning: { mode: 'shadow', window: 300 } }, { learning: { mode: 'auto' } }])).toEqual({
    ...defaultLearning,
    mode: 'auto',
    window: 300,
  })
})

test.each([{ mode: 'on' }, { min_agreement: 1 }, { min_support: 0 }, { window: 10 }, { audit_share: 2 }, { other: 1 }])(
  'the setting %j is refused',
  (learning) => {
    expect(settingsPatch.safeParse({ learning }).success).toBe(false)
  },
)
