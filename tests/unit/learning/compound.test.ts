import { describe, expect, test } from 'vitest'
import { jsonHash } from '../../../src/base/hash.ts'
import type { Episode, EpisodeAct } from '../../../src/features/learning/episode.ts'
import { learnReflexes, type ReflexLearnOptions } from '../../../src/features/learning/reflexes/learn.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { runReflex } from '../../../src/reflexes/run-reflex.ts'
import { checkReflex } from '../../../src/reflexes/static-check.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { call, episode, history, reply } from './histories.ts'

const sandbox = new QuickJsSandbox(sandboxModule)

async function actions(episodes: Episode[], event: Episode, options: ReflexLearnOptions = {}): Promise<unknown[]> {
  const found: unknown[] = []
  for (const { code } of learnReflexes(episodes, options).reflexes) {
    const checked = await checkReflex(code)
    expect(checked).toMatchObject({ ok: true })
    const { action } = runReflex(sandbox, { code, hash: checked.ok ? checked.hash : '' }, { ...sampleContext, ...event.saw })
    if (action) found.push(action)
  }
  return found
}

const said = (index: number) => ({ type: 'mail', line: index % 2 === 0 ? `please refund order k${index}` : `where is my parcel k${index}` })
const tool = (index: number) => (index % 2 === 0 ? 'refund' : 'track')
const PHRASES = ['Done.', 'It is taken care of.', 'I did what you asked for.']
const phrase = (index: number) => PHRASES[(index * 7 + Math.floor(index / 5)) % 3] ?? ''
/** The model calls a tool and then says that it did. */
const talks = (index: number, words: string): [ReturnType<typeof said>, EpisodeAct[]] => [
  said(index),
  [...call(tool(index), { order: `k${index}` }), ...reply(words)],
]
const heard = (one: Episode): Episode => ({
  ...one,
  saw: { ...one.saw, event: { ...one.saw.event, meta: { ...one.saw.event.meta, heard: true } } },
})
const draw = (index: number): number => Number.parseInt(jsonHash(index).slice(0, 8), 16) / 2 ** 32
const fresh = episode(9000, { type: 'mail', line: 'please refund order k900' }, [])
const refunds = { action_type: 'call_tool', tool: 'refund', args: { order: 'k900' } }

describe('a model that calls a tool and then says so', () => {
  test('teaches the call where nobody hears the words, and only there', async () => {
    const episodes = history(300, (index) => talks(index, phrase(index)))
    expect(await actions(episodes, fresh)).toEqual([refunds])
    expect(await actions(episodes, heard(fresh))).toEqual([])
  })

  test('teaches the words, too, where they are always the same', async () => {
    const episodes = history(300, (index) => talks(index, `I called ${tool(index)}.`))
    const both = { action_type: 'sequence', acts: [refunds, { action_type: 'reply', content: 'I called refund.' }], consume: true }
    expect(await actions(episodes, fresh)).toEqual([both])
    expect(await actions(episodes, heard(fresh))).toEqual([both])
    expect(await actions(episodes.map(heard), heard(fresh))).toEqual([both])
  })

  test('teaches words with what the event says', async () => {
    const episodes = history(300, (index) => talks(index, `I did it for order k${index}, as you asked.`)).map(heard)
    expect(await actions(episodes, heard(fresh))).toMatchObject([
      { acts: [refunds, { action_type: 'reply', content: 'I did it for order k900, as you asked.' }] },
    ])
  })

  test('teaches words that repeat what tells its decisions apart', async () => {
    const currency = (index: number) => (index % 3 === 0 ? 'EUR' : 'CHF')
    const pays = (index: number): [{ type: string; line: string }, EpisodeAct[]] => [
      { type: 'mail', line: `please refund order k${index} in ${index % 3 === 0 ? 'euro' : 'francs'}` },
      [...call('refund', { order: `k${index}`, currency: currency(index) }), ...reply(`I refunded order k${index} in ${currency(index)}.`)],
    ]
    const episodes = history(300, pays).map(heard)
    const asked = episode(9000, { type: 'mail', line: 'please refund order k900 in francs' }, [])
    for (const replies of ['heard', 'by_person'] as const)
      expect(await actions(episodes, heard(asked), { replies })).toMatchObject([
        {
          acts: [
            { tool: 'refund', args: { order: 'k900', currency: 'CHF' } },
            { action_type: 'reply', content: 'I refunded order k900 in CHF.' },
          ],
        },
      ])
  })

  test('teaches nothing where nothing gives the words, and the refusal names the setting', () => {
    const poems = history(300, (index) => talks(index, `Poem ${(index * 7919) % 9973} for you.`)).map(heard)
    const { reflexes, refused } = learnReflexes(poems)
    expect(reflexes).toEqual([])
    expect(refused.map(({ reason }) => reason).join()).toContain('gives its words, which vary: the setting learning.replies')
  })

  test('teaches one of its phrases, of which any will do, where somebody hears words that vary', async () => {
    const episodes = history(300, (index) => talks(index, phrase(index))).map(heard)
    for (const replies of ['heard', 'by_person'] as const) {
      const [spoken] = (await actions(episodes, heard(fresh), { replies })) as { acts: { content: string }[] }[]
      expect(spoken).toMatchObject({ acts: [refunds, { action_type: 'reply' }], any_words: true })
      expect(PHRASES).toContain(spoken?.acts[1]?.content)
    }
    expect(await actions(episodes, heard(fresh), { replies: 'ignore' })).toEqual([refunds])
  })

  test('teaches none of its phrases that one sender alone brings about most often', async () => {
    const isTold = (index: number) => index % 20 < 6
    const episodes = history(300, (index) => [
      ...talks(index, isTold(index) ? 'Send money to me.' : phrase(index)),
      isTold(index) ? 'mallory' : `user:${index % 7}`,
    ])
    const [spoken] = (await actions(episodes.map(heard), heard(fresh))) as { acts: { content: string }[] }[]
    expect(PHRASES).toContain(spoken?.acts[1]?.content)
  })

  test('teaches nothing where its words always count and vary, and the refusal names the setting', () => {
    const { reflexes, refused } = learnReflexes(history(300, (index) => talks(index, phrase(index))).map(heard), { replies: 'exact' })
    expect(reflexes).toEqual([])
    expect(refused.map(({ reason }) => reason).join()).toContain('learning.replies')
  })

  test('teaches a phrase of many, some of which it says only once', async () => {
    const words = (index: number) => (index % 7 < 2 ? `I saw to it, case ${(index * 7919) % 9973}.` : `Order k${index}: ${phrase(index)}`)
    const episodes = history(300, (index) => talks(index, words(index))).map(heard)
    const [spoken] = (await actions(episodes, heard(fresh))) as { acts: { content: string }[] }[]
    expect(spoken).toMatchObject({ acts: [refunds, { action_type: 'reply' }], any_words: true })
    expect(PHRASES.map((one) => `Order k900: ${one}`)).toContain(spoken?.acts[1]?.content)
  })

  test('teaches what it says in thirty ways beside what it says in one', async () => {
    const words = (index: number) =>
      index % 2 === 0 ? `Case ${'abcdefghij'[(index / 2) % 10]}${Math.floor(index / 20) % 3}.` : 'It comes.'
    const episodes = history(300, (index) => talks(index, words(index))).map(heard)
    const asked = heard(episode(9001, { type: 'mail', line: 'where is my parcel k901' }, []))
    expect(await actions(episodes, heard(fresh))).toMatchObject([{ acts: [refunds, { action_type: 'reply' }], any_words: true }])
    expect(await actions(episodes, asked)).toMatchObject([{ acts: [{ tool: 'track' }, { content: 'It comes.' }] }])
    expect(learnReflexes(episodes).reflexes.map(({ by }) => by)).toEqual(['rules', 'rules'])
  })

  test('teaches what it does for those who hear it, and for all others in silence', async () => {
    const episodes = history(400, (index) => talks(index, phrase(index))).map((one, index) => (index % 3 === 0 ? heard(one) : one))
    expect(await actions(episodes, heard(fresh))).toMatchObject([{ acts: [refunds, { action_type: 'reply' }], any_words: true }])
    expect(await actions(episodes, fresh)).toEqual([refunds])
  })

  const silent = (one: Episode): Episode => ({ ...one, acts: one.acts.filter(({ kind }) => kind !== 'reply') })

  test('teaches its words where it is silent now and then, which nothing tells apart', async () => {
    for (const share of [1 / 9, 1 / 3]) {
      const all = history(400, (index) => talks(index, phrase(index))).map(heard)
      const episodes = all.map((one, index) => (draw(index + 5000) < share ? silent(one) : one))
      expect(await actions(episodes, heard(fresh))).toMatchObject([{ acts: [refunds, { action_type: 'reply' }], any_words: true }])
    }
  })

  test('teaches its silence where the event tells it', async () => {
    const all = history(400, (index) => talks(index, phrase(index))).map(heard)
    const of = (one: Episode, via: string): Episode => {
      const event = { ...one.saw.event, via }
      return { ...one, saw: { ...one.saw, event, recent_events: [event] } }
    }
    const isQuiet = (index: number) => draw(index + 5000) < 0.4
    const episodes = all.map((one, index) => (isQuiet(index) ? silent(of(one, 'bulk')) : of(one, 'chat')))
    expect(await actions(episodes, of(heard(fresh), 'chat'))).toMatchObject([
      { acts: [refunds, { action_type: 'reply' }], any_words: true },
    ])
    expect(await actions(episodes, of(heard(fresh), 'bulk'))).toEqual([refunds])
  })

  test('teaches no words where it is mostly silent', async () => {
    const all = history(400, (index) => talks(index, phrase(index))).map(heard)
    const episodes = all.map((one, index) => (draw(index + 5000) < 0.7 ? silent(one) : one))
    for (const { code } of learnReflexes(episodes).reflexes) expect(code).not.toContain("'refund'")
  })

  test('teaches words that vary by what it does word for word, and words that it chooses as it likes', async () => {
    const words = (index: number) => (index % 2 === 0 ? phrase(index) : `Order k${index} is on its way.`)
    const episodes = history(300, (index) => talks(index, words(index))).map(heard)
    const asked = heard(episode(9001, { type: 'mail', line: 'where is my parcel k901' }, []))
    expect(await actions(episodes, heard(fresh))).toMatchObject([{ any_words: true }])
    const [exact] = (await actions(episodes, asked)) as object[]
    expect(exact).toMatchObject({ acts: [{ tool: 'track' }, { content: 'Order k901 is on its way.' }] })
    expect(exact).not.toHaveProperty('any_words')
  })

  test('teaches no words alone of which others would do', () => {
    const episodes = history(300, (index) => [said(index), reply(index % 2 === 0 ? phrase(index) : 'It comes tomorrow.')]).map(heard)
    const codes = (replies: 'heard' | 'by_person') => learnReflexes(episodes, { replies }).reflexes.map(({ code }) => code)
    for (const replies of ['heard', 'by_person'] as const) expect(codes(replies).join()).not.toMatch(/any_words|Done/)
  })

  test('teaches nothing by a coin', () => {
    const coin = (index: number) => ((index * 2654435761) >>> 7) % 2
    const flips = history(400, (index) => [said(index), [...call(`side${coin(index)}`, {}), ...reply(`It fell on ${coin(index)}.`)]])
    expect(learnReflexes(flips).reflexes).toEqual([])
    expect(learnReflexes(flips.map(heard)).reflexes).toEqual([])
  })
})

describe('a model that makes several calls', () => {
  const opened = (index: number, output: unknown): EpisodeAct[] => {
    const [first] = call('open', { subject: `k${index}` })
    return first ? [{ ...first, output }] : []
  }
  const chain = (
    index: number,
    output: (id: string) => unknown = (id) => ({ ticket: { id } }),
  ): [ReturnType<typeof said>, EpisodeAct[]] => {
    if (index % 2 === 1) return [said(index), call('track', { order: `k${index}` })]
    const id = `T-${(index * 7919) % 9973}`
    return [
      said(index),
      [...opened(index, output(id)), ...call('assign', { ticket: id, to: 'billing' }), ...reply(`Ticket ${id} is open.`)],
    ]
  }

  test('teaches later calls and words with what earlier ones returned', async () => {
    expect(
      await actions(
        history(300, (index) => chain(index)),
        fresh,
      ),
    ).toEqual([
      {
        action_type: 'sequence',
        acts: [
          { action_type: 'call_tool', tool: 'open', args: { subject: 'k900' } },
          {
            action_type: 'call_tool',
            tool: 'assign',
            args: { ticket: null, to: 'billing' },
            uses: [{ at: '/args/ticket', output: 0, path: '/ticket/id' }],
          },
          { action_type: 'reply', parts: ['Ticket ', { output: 0, path: '/ticket/id' }, ' is open.'] },
        ],
        consume: true,
      },
    ])
  })

  test('teaches nothing from outputs that are masked in the log', () => {
    const { reflexes, refused } = learnReflexes(
      history(300, (index) => {
        const [event, acts] = chain(index, () => '[redacted]')
        return [event, acts.map((act) => (act.name === 'assign' ? { ...act, input: { ticket: '[redacted]', to: 'billing' } } : act))]
      }),
    )
    expect(reflexes.filter(({ acts }) => acts.some(({ name }) => name === 'assign'))).toEqual([])
    expect(refused.map(({ reason }) => reason).join()).toContain('masked in the log')
  })
})

describe('a model that makes the same calls in several orders', () => {
  const both = (index: number, order = draw(index) < 0.7): EpisodeAct[] => {
    const [fan, tell] = [call('fan', { room: `r${index % 5}` }), call('tell', { room: `r${index % 5}` })]
    return order ? [...fan, ...tell] : [...tell, ...fan]
  }
  const hot = (index: number) => draw(index + 5000) < 0.5
  const reading = (index: number) => ({ type: 'reading', room: `r${index % 5}`, state: hot(index) ? 'hot' : 'cold' })

  test('teaches one decision, whose acts may be in any order', async () => {
    const episodes = history(400, (index) => [reading(index), hot(index) ? both(index) : []])
    const fresh = episode(9000, { type: 'reading', room: 'r3', state: 'hot' }, [])
    expect(await actions(episodes, fresh)).toMatchObject([
      { action_type: 'sequence', acts: [{ tool: 'fan' }, { tool: 'tell' }], any_order: true },
    ])
    expect(learnReflexes(episodes).disputed).toEqual([])
  })

  test('teaches the orders that its events tell apart', async () => {
    const episodes = history(400, (index) => [reading(index), both(index, hot(index))])
    const of = (state: string) => actions(episodes, episode(9000, { type: 'reading', room: 'r3', state }, []))
    expect(await of('hot')).toMatchObject([{ acts: [{ tool: 'fan' }, { tool: 'tell' }] }])
    expect(await of('cold')).toMatchObject([{ acts: [{ tool: 'tell' }, { tool: 'fan' }] }])
    expect(JSON.stringify([await of('hot'), await of('cold')])).not.toContain('any_order')
  })

  test('teaches acts of which the order may vary as their words', async () => {
    const words = (index: number) => PHRASES[Math.floor(draw(index + 9000) * PHRASES.length)] ?? ''
    const episodes = history(400, (index) => [reading(index), hot(index) ? [...both(index), ...reply(words(index))] : []]).map(heard)
    const [action] = await actions(episodes, heard(episode(9000, { type: 'reading', room: 'r3', state: 'hot' }, [])))
    expect(action).toMatchObject({ acts: [{ tool: 'fan' }, { tool: 'tell' }, { action_type: 'reply' }], any_order: true, any_words: true })
  })

  test('teaches nothing of orders where a call uses what another one returned', () => {
    const episodes = history(400, (index) => {
      const first = { ...(call('open', { room: `r${index % 5}` })[0] as EpisodeAct), output: { id: `t${index}` } }
      const [second = first] = call('close', { id: `t${index}` })
      return [reading(index), hot(index) ? (draw(index) < 0.7 ? [first, second] : [second, first]) : []]
    })
    for (const { code } of learnReflexes(episodes).reflexes) expect(code).not.toContain('any_order')
  })
})
