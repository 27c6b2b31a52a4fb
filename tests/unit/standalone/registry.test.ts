import { describe, expect, test } from 'vitest'
import { createReflex } from '../../../src/standalone/index.ts'
import type { Place } from '../../../src/skills/manifest/compat.ts'
import { memoryStorage } from '../../../src/standalone/storage.ts'
import { SkillRegistry } from '../../../src/standalone/registry.ts'
import { saveNote, saveNoteWith, world } from './fixtures.ts'

const registry = (storage = memoryStorage(), place: Partial<Place> = {}): SkillRegistry =>
  new SkillRegistry(storage.skills, { probes: [], place: { project: null, env: ['staging'], toolset: null, repo: null, ...place } })

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

  test('uses an older version where a newer one does not fit', () => {
    const skills = registry()
    skills.register(saveNote)
    skills.register(saveNoteWith({ version: '2.0.0', compat: { env: ['production'] } }))
    expect(skills.find('note.save')?.manifest.version).toBe('1.0.0')
    expect(skills.index().size).toBe(1)
    const there = registry(memoryStorage(), { env: ['production'] })
    there.register(saveNote)
    there.register(saveNoteWith({ version: '2.0.0', compat: { env: ['production'] } }))
    expect(there.find('note.save')?.manifest.version).toBe('2.0.0')
    const nowhere = registry()
    nowhere.register(saveNoteWith({ version: '2.0.0', compat: { env: ['production'] } }))
    expect([nowhere.find('note.save')?.manifest.version, nowhere.index().size]).toEqual(['2.0.0', 0])
  })

  test('keeps the state of what is registered again after a restart', () => {
    const storage = memoryStorage()
    const first = registry(storage)
    first.register(saveNote)
    first.setState('note.save', '1.0.0', 'deprecated')
    const second = registry(storage)
    second.register(saveNote)
    expect(second.find('note.save')?.state).toBe('deprecated')
  })
})

test('a configuration that cannot be is refused with a reason', () => {
  expect(() => world({ skills: [{ id: 'x' }] })).toThrow('a skill is invalid: version')
  expect(() => world({ skills: [saveNote, saveNoteWith({ description: 'Other' })] })).toThrow('a skill is conflict')
  expect(() => createReflex({ project: 'x', storage: { file: 'x.sqlite' } as never })).toThrow(
    'import createReflex from reflex-agents/wrap/node',
  )
  expect(() => world({ blackboard: { settings: { ctx: { bad: undefined as never } } } }).reflex.session()).toThrow(
    'the blackboard cannot be seeded',
  )
})
