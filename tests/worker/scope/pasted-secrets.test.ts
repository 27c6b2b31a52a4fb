import { describe, expect, test } from 'vitest'
import { call } from '../../support/http.ts'
import { freshScope, logOf, note, sendAndSettle, stubOf, textOf, until } from '../../support/scopes.ts'
import { ask, behaviours, effects, providers } from '../../support/test-agents.ts'

const TOKEN = `ghp_${'a1B2'.repeat(9)}`

async function pasted(pasted_secrets?: 'keep' | 'mask' | 'mask_prompts') {
  const scope = freshScope()
  if (pasted_secrets) await stubOf(scope).configure({ pasted_secrets }, 'a test')
  behaviours.set(scope, async (context, deps) => {
    const text = textOf(context.events[0] as never)
    await deps.call('act', { text: text.replace('use ', '') })
    deps.reply(`You said: ${text}. The token is ${text.replace('use ', '')}.`)
    return { said: await ask(deps, `The user says: ${text}`) }
  })
  const event = note(scope, `use ${TOKEN}`)
  await sendAndSettle(stubOf(scope), event)
  const log = JSON.stringify(await logOf(stubOf(scope)))
  return { scope, event, log, acted: effects.filter((effect) => effect.scope === scope).map(({ text }) => text) }
}

describe('a secret that somebody pastes', () => {
  test('is shown as its kind in the log, in D1 and in spans, and a tool gets it as its input', async () => {
    const { scope, event, log, acted } = await pasted()
    expect(acted).toEqual([TOKEN])
    expect(log).not.toContain(TOKEN)
    expect(log).toContain('use [secret: token]')
    expect(log).toContain('The token is [secret: token].')
    const listed = async () => (await call(`/v1/events?scope=${encodeURIComponent(scope)}`)).body as { items: { id: string }[] }
    await until(async () => (await listed()).items.length > 0, 'D1 has the event')
    expect(JSON.stringify(await listed())).not.toContain(TOKEN)
    const trace = await call(`/v1/traces/${event.meta.trace_id}?scope=${encodeURIComponent(scope)}`)
    expect(JSON.stringify(trace.body)).not.toContain(TOKEN)
  })

  test.each([
    ['mask', TOKEN],
    ['mask_prompts', '[secret: token]'],
  ] as const)('is in what a model sees or not, by the setting: %s', async (setting, seen) => {
    const prompt = `The user says: use ${seen}`
    let asked = 0
    providers.set(prompt, () => {
      asked += 1
      return null
    })
    const { log } = await pasted(setting)
    providers.delete(prompt)
    expect(asked).toBe(1)
    expect(log).not.toContain(TOKEN)
  })

  test('stays where the setting keeps it', async () => {
    const { log } = await pasted('keep')
    expect(log).toContain(TOKEN)
  })
})
