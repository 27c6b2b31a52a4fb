import { describe, expect, test } from 'vitest'
import { defineAgent } from '../../../src/agent/define-agent.ts'
import { buildRegistry } from '../../../src/agent/registry.ts'
import type { SettingsPatch } from '../../../src/contract/settings/settings.ts'
import { SettingsStore } from '../../../src/engine/settings/settings-store.ts'

const NEW = 'openai-compatible/new'
const agents = buildRegistry([
  defineAgent({ name: 'plain', scopes: ['plain/*'] }),
  defineAgent({ name: 'unpriced', scopes: ['unpriced/*'], settings: { model: NEW } }),
  defineAgent({ name: 'limited', scopes: ['limited/*'], settings: { budget: { usd_per_day: 1 } } }),
])

/** The changes of a scope, whose deployment has these variables: what each one answers. */
function scopeOf(scope: string, variables: Record<string, string> = {}, kept: SettingsPatch = {}) {
  const keys = { OPENAI_COMPATIBLE_BASE_URL: 'https://models.example.com', OPENAI_COMPATIBLE_API_KEY: 'key' }
  const store = new SettingsStore({ database: { read: () => kept } as never, scope, env: { ...keys, ...variables } as never, agents })
  return (patch: SettingsPatch) => store.change({ write: () => {} } as never, patch)
}

describe('an agent is refused', () => {
  const refused = (name: string) => ({ ok: false, detail: expect.stringMatching(`^${name}: the model ${NEW} has no price`) })
  const shared = { REFLEX_BUDGETS: '{"scope:plain/*": {"usd_per_day": 5}}' }

  test('whose model has no price, by a budget of the deployment or of the scope', () => {
    expect(scopeOf('plain/1', shared)({ agent: 'unpriced' })).toMatchObject(refused('agent'))
    expect(scopeOf('plain/1', {}, { budget: { usd_per_day: 1 } })({ agent: 'unpriced' })).toMatchObject(refused('agent'))
    expect(scopeOf('plain/1', {})({ agent: 'unpriced' })).toMatchObject({ ok: true })
    expect(scopeOf('plain/1', shared)({ agent: 'unpriced', model: 'offline' })).toMatchObject({ ok: true })
  })

  test('whose budget the model of the scope has no price for', () => {
    expect(scopeOf('plain/1', {}, { model: NEW })({ agent: 'limited' })).toMatchObject(refused('agent'))
    expect(scopeOf('plain/1')({ agent: 'limited' })).toMatchObject({ ok: true })
  })

  test('also where the scope goes back to its agent by a reset', () => {
    const change = scopeOf('unpriced/1', { REFLEX_BUDGETS: '{"scope:unpriced/*": {"usd_per_day": 5}}' }, { agent: 'plain' })
    expect(change({ agent: null })).toMatchObject(refused('agent'))
  })

  test('also where a scope without its own budget gets that of its agent', () => {
    const own = { model: NEW, budget: { rows_per_day: 9 } }
    expect(scopeOf('limited/1', {}, own)({ budget: null })).toMatchObject(refused('budget'))
    expect(scopeOf('plain/1', {}, own)({ budget: null })).toMatchObject({ ok: true })
    // Nothing is to be paid for what the deployment limits anyway.
    expect(scopeOf('plain/1', shared, own)({ budget: null })).toMatchObject({ ok: true })
  })

  test('by the name of the setting that was changed beside it', () => {
    expect(scopeOf('plain/1')({ agent: 'plain', model: NEW, budget: { usd_per_day: 1 } })).toMatchObject(refused('budget'))
    expect(scopeOf('plain/1', shared)({ agent: 'plain', model: NEW })).toMatchObject(refused('model'))
  })
})
