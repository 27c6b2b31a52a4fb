import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { createReflex as inMemory } from '../../../src/standalone/index.ts'
import { createReflex } from '../../../src/standalone/node/index.ts'

const given = (config: object) => () => inMemory({ project: 'acme/notes', ...config })

describe('the settings of a process', () => {
  test.each([
    [{ epsilon: 0 }, 'there is no setting epsilon'],
    [{ kcards: 3 }, 'there is no setting kcards: the nearest is k_cards; the others are ask, blackboard'],
    [{ compat: { enviroment: 'staging' } }, 'there is no setting compat.enviroment: the nearest is compat.env'],
    [{ redaction: { field: ['iban'] } }, 'the nearest is redaction.fields'],
    [{ k_cards: 9 }, 'k_cards is 9: it is a number from 0 to 5'],
    [{ tau: 85 }, 'tau is 85: it is a number from 0 to 1'],
    [{ storage: 'local://./.reflex' }, 'import createReflex from reflex-agents/wrap/node'],
  ])('%j is refused by its name', (config, message) => {
    expect(given(config)).toThrow(message)
  })

  test('have first values of the blackboard that are asked at each turn', () => {
    let day = 'monday'
    const reflex = inMemory({ project: 'acme/notes', blackboard: { settings: { ctx: { team: 'payments' } }, probes: () => ({ day }) } })
    reflex.session()
    day = 'tuesday'
    reflex.session()
    const seeds = reflex.log.entries().filter(({ kind }) => kind === 'blackboard-seeded')
    expect(seeds).toMatchObject([
      { blackboard: { ctx: { team: 'payments' }, env: { day: 'monday' } }, sources: { 'env.day': 'probes' } },
      { blackboard: { env: { day: 'tuesday' } } },
    ])
  })

  test('local://FOLDER keeps the state in a file of the folder, which is made', async () => {
    const folder = path.join(await mkdtemp(path.join(tmpdir(), 'reflex-')), '.reflex')
    createReflex({ project: 'acme/notes', storage: `local://${folder}` }).close()
    expect(existsSync(path.join(folder, 'reflex.db'))).toBe(true)
    createReflex({ project: 'acme/notes', storage: { file: path.join(folder, 'reflex.db') } }).close()
  })
})
