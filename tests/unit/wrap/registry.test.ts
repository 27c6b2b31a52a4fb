import { describe, expect, test } from 'vitest'
import { compareVersions } from '../../../src/wrap/compare-versions.ts'
import { createReflex } from '../../../src/wrap/index.ts'
import { memoryStorage } from '../../../src/wrap/memory-storage.ts'
import { SkillRegistry } from '../../../src/wrap/registry.ts'
import { saveNote, saveNoteWith, world } from './fixtures.ts'

const registry = () => new SkillRegistry(memoryStorage().skills, [])

describe('the registry', () => {
  test('takes a version once: the same content is unchanged, other content a conflict', () => {
    const skills = registry()
    expect(skills.register(saveNote)).toMatchObject({ ok: true, outcome: 'created' })
    expect(skills.register(structuredClone(saveNote))).toMatchObject({ ok: true, outcome: 'unchanged' })
    expect(skills.register(saveNoteWith({ description: 'Other' }))).toMatchObject({ ok: false, reason: 'conflict', status: 409 })
    expect(skills.register(saveNoteWith({ description: 'Other', version: '1.0.1' }))).toMatchObject({ ok: true })
  })

  test('refuses what is invalid, naming the fields', () => {
    expect(registry().register({ ...saveNote, plan: undefined })).toMatchObject({ ok: false, status: 400, errors: [{ path: 'plan' }] })
    const unreachable = saveNoteWith({ activation: { ...saveNote.activation, tau: 9 } })
    expect(registry().register(unreachable)).toMatchObject({ ok: false, reason: 'invalid', errors: [{ path: 'activation.tau' }] })
  })

  test('finds the newest active version, and shows no other', () => {
    const skills = registry()
    for (const version of ['1.9.0', '1.10.0', '2.0.0-beta.1']) skills.register(saveNoteWith({ version }))
    skills.register(saveNoteWith({ version: '3.0.0' }), { state: 'candidate' })
    expect(skills.find('note.save')?.manifest.version).toBe('2.0.0-beta.1')
    skills.setState('note.save', '2.0.0-beta.1', 'deprecated')
    expect(skills.find('note.save')?.manifest.version).toBe('1.10.0')
    expect(skills.find('note.save', '3.0.0')?.state).toBe('candidate')
    expect([skills.find('other'), skills.find('note.save', '9.9.9'), skills.setState('note.save', '9.9.9', 'active')]).toEqual([
      null,
      null,
      null,
    ])
    expect(skills.index().size).toBe(1)
  })

  test('keeps the state of what is registered again after a restart', () => {
    const storage = memoryStorage()
    const first = new SkillRegistry(storage.skills, [])
    first.register(saveNote)
    first.setState('note.save', '1.0.0', 'deprecated')
    const second = new SkillRegistry(storage.skills, [])
    second.register(saveNote)
    expect(second.find('note.save')?.state).toBe('deprecated')
  })
})

test('a configuration that cannot be is refused with a reason', () => {
  expect(() => world({ skills: [{ id: 'x' }] })).toThrow('a skill is invalid: version')
  expect(() => world({ skills: [saveNote, saveNoteWith({ description: 'Other' })] })).toThrow('a skill is conflict')
  expect(() => createReflex({ project: 'x', storage: { file: 'x.sqlite' } as never })).toThrow('import createReflex from reflex/wrap/node')
  expect(() => world({ blackboard: { settings: { ctx: { bad: undefined as never } } } }).reflex.session()).toThrow(
    'the blackboard cannot be seeded',
  )
})

test.each([
  ['1.2.3', '1.2.3', 0],
  ['1.2.3', '1.2.10', -1],
  ['1.0.0-alpha', '1.0.0', -1],
  ['1.0.0-alpha.1', '1.0.0-alpha', 1],
  ['1.0.0-2', '1.0.0-10', -1],
  ['1.0.0-1', '1.0.0-a', -1],
  ['1.0.0-rc.1', '1.0.0-beta.11', 1],
  ['1.0.0-a-b', '1.0.0-a-c', -1],
  ['1.0.0+one', '1.0.0+two', 0],
])('%s against %s is %i', (left, right, order) => {
  expect(compareVersions(left, right)).toBe(order)
  expect(compareVersions(right, left)).toBe(order === 0 ? 0 : -order)
})
