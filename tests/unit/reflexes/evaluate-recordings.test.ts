import { unboundedComputing } from '../../../src/base/computing.ts'
import { expect, test } from 'vitest'
import type { RecordingPage } from '../../../src/contract/scope-api.ts'
import { evaluateRecordings } from '../../../src/reflexes/evaluation.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { reflexOf } from '../../support/reflex-programs.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'

const sandbox = new QuickJsSandbox(sandboxModule)
const program = reflexOf('return null')
const recording = (seq: number) =>
  JSON.stringify({ seq, event_id: `e${seq}`, at: '', source: 'rebuilt', context: sampleContext, decision: null })
/** Ten recordings, three a page; `next` is the last one's seq. */
const read = async (after: number): Promise<RecordingPage> => {
  const seqs = Array.from({ length: 10 }, (_, index) => index + 1)
    .filter((seq) => seq > after)
    .slice(0, 3)
  const last = seqs.at(-1) ?? 10
  return { recordings: seqs.map(recording), next: last < 10 ? last : null, replies: 'heard' }
}
const evaluate = (limits?: { contexts: number; fuel: number }) =>
  evaluateRecordings({
    computing: unboundedComputing(),
    sandbox,
    program,
    identify: async (calls) => calls.map(() => null),
    read,
    ...(limits ? { limits } : {}),
  })

test('an evaluation reads page after page to the end', async () => {
  expect(await evaluate()).toMatchObject({ contexts: { rebuilt: 10, undecided: 10 }, truncated: false })
})

test.each([
  [4, true],
  [9, true],
  [10, false],
])('with at most %i contexts it is truncated: %s', async (contexts, truncated) => {
  expect(await evaluate({ contexts, fuel: 1e9 })).toMatchObject({ contexts: { rebuilt: contexts }, truncated })
})

test('it stops when its fuel is used up', async () => {
  const { fuel } = sandbox.run(program, sampleContext)
  expect(await evaluate({ contexts: 100, fuel: fuel * 3 })).toMatchObject({ contexts: { rebuilt: 3 }, truncated: true })
})

test.each([
  ['heard', true, 'I could not.', { agreed: 0, disagreed: 1 }],
  ['heard', true, 'I could not.', { agreed: 1, disagreed: 0 }, ', any_words: true'],
  ['exact', true, 'I could not.', { agreed: 0, disagreed: 1 }, ', any_words: true'],
  ['exact', false, 'I could not.', { agreed: 0, disagreed: 1 }],
  ['exact', false, 'Done.', { agreed: 1, disagreed: 0 }],
  ['by_person', true, 'I could not.', { agreed: 1, disagreed: 0 }],
  ['by_person', false, '', { agreed: 1, disagreed: 0 }],
  ['ignore', false, 'I could not.', { agreed: 0, disagreed: 1 }],
] as const)(
  'words of its own are compared by the setting %s, heard %s, with «%s»: %j%s',
  async (replies, heard, content, expected, ...[any = '']: string[]) => {
    const acts = `[{ action_type: 'set_scratch', key: 'k', value: 1 }, { action_type: 'reply', content: 'Done.' }]`
    const context = { ...sampleContext, event: { ...sampleContext.event, meta: { ...sampleContext.event.meta, ...(heard && { heard }) } } }
    const noted = { act: 'set_scratch', key: 'k', value: 1 }
    const decision = { by: 'turn', acts: content === '' ? [noted] : [noted, { act: 'reply', content }] }
    const { agreement } = await evaluateRecordings({
      computing: unboundedComputing(),
      sandbox,
      program: reflexOf(`return { action_type: 'sequence', acts: ${acts}${any} }`),
      identify: async (calls) => calls.map(() => null),
      read: async () => ({ recordings: [JSON.stringify({ ...JSON.parse(recording(1)), context, decision })], next: null, replies }),
    })
    expect(agreement).toMatchObject(expected)
  },
)
