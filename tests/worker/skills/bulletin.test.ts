import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import { call, problem, scopePath } from '../../support/http.ts'
import { freshId } from '../../support/reflexes.ts'
import { freshScope } from '../../support/scopes.ts'
import { copyVersion, putVersion } from '../../support/skills.ts'

const bulletin = (scope: string, text: string) => call(`${scopePath(scope, '/bulletin')}?text=${encodeURIComponent(text)}`)
const cardsOf = async (scope: string, text: string): Promise<string[]> =>
  (await bulletin(scope, text)).body.cards.map((card: { skill_id: string; version: string }) => `${card.skill_id}@${card.version}`)

/** A scope, and skills with a word of their own, so that no other test's are among them. */
const world = async (settings: object) => {
  const scope = freshScope('bulletin')
  expect(await call(scopePath(scope), { method: 'PATCH', json: settings })).toMatchObject({ status: 200 })
  const word = crypto.randomUUID().replaceAll('-', '')
  const cues = { 'activation.keywords_any': [word], 'activation.goal_labels': [word], 'activation.tau': 1, compat: {} }
  return { scope, word, cues }
}

describe("a scope's bulletin", () => {
  test('shows the active skills that fit the conversation', async () => {
    const { scope, word, cues } = await world({})
    const { id } = await putVersion({ changes: cues, state: 'active' })
    await putVersion({ changes: cues })
    await putVersion({ changes: cues, state: 'deprecated' })
    const { status, body } = await bulletin(scope, `please ${word} it`)
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        text: expect.stringContaining(`<SKILL_BULLETIN>`),
        tokens: expect.any(Number),
        cards: [
          { skill_id: id, version: '1.3.0', text: expect.stringContaining(id), tokens: expect.any(Number), shortened: false, score: 1 },
        ],
      },
    })
    expect((await bulletin(scope, 'something else')).body).toEqual({ text: '', tokens: 0, cards: [] })
    expect((await call(scopePath(scope, '/bulletin'))).body.cards).toEqual([])
  })

  test('goes by the settings: where its agent works, and for what', async () => {
    const { scope, word, cues } = await world({ env: 'staging', repo: 'r' })
    const [here, elsewhere] = [freshId('here'), freshId('elsewhere')]
    await putVersion({ changes: { ...cues, id: here, compat: { env: ['staging'], repo: 'r' } }, state: 'active' })
    await putVersion({ changes: { ...cues, id: elsewhere, compat: { env: ['prod'] } }, state: 'active' })
    expect(await cardsOf(scope, word)).toEqual([`${here}@1.3.0`])
    expect(await cardsOf(scope, 'hello')).toEqual([])
    await call(scopePath(scope), { method: 'PATCH', json: { env: 'prod', goal_labels: [word] } })
    expect(await cardsOf(scope, 'hello')).toEqual([`${elsewhere}@1.3.0`])
  })

  test('shows the newest version that fits, once', async () => {
    const { scope, word, cues } = await world({ env: 'prod' })
    const id = freshId('skill')
    for (const version of ['1.9.0', '1.10.0']) await putVersion({ changes: { ...cues, id, version }, state: 'active' })
    await putVersion({ changes: { ...cues, id, version: '2.0.0', compat: { env: ['staging'] } }, state: 'active' })
    expect(await cardsOf(scope, word)).toEqual([`${id}@1.10.0`])
  })

  test('shows no skill whose owner does not cover the scope', async () => {
    const { scope, word, cues } = await world({})
    await putVersion({ changes: cues, scopes: ['elsewhere/*'], state: 'active' })
    expect(await cardsOf(scope, word)).toEqual([])
    await putVersion({ changes: cues, scopes: ['elsewhere/*', 'bulletin/*'], state: 'active' })
    expect(await cardsOf(scope, word)).toHaveLength(1)
  })

  test('looks through all skills, however many pages they take', async () => {
    const { scope, word, cues } = await world({})
    await copyVersion(await putVersion({ state: 'active' }), 60)
    const { id } = await putVersion({ changes: cues, state: 'active' })
    expect(await cardsOf(scope, word)).toEqual([`${id}@1.3.0`])
  })

  test('leaves out a manifest that can no longer be read, and warns', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const { scope, word, cues } = await world({})
    const { id } = await putVersion({ changes: cues, state: 'active' })
    await env.DB.prepare(`UPDATE artifact_versions SET content = json_set(content, '$.no_longer', 1) WHERE id = ?`).bind(id).run()
    const shown = await cardsOf(scope, word)
    const texts = warned.mock.calls.map(([text]) => String(text))
    warned.mockRestore()
    expect(shown).toEqual([])
    expect(texts).toEqual([expect.stringContaining(`${id}@1.3.0`)])
  })

  test('is for no text without end', async () => {
    expect(await bulletin(freshScope(), 'x'.repeat(10_001))).toMatchObject(problem(400))
  })
})
