import { z } from 'zod'
import { jsonSchema } from 'ai'
import { describe, expect, test } from 'vitest'
import { defineTool, type ToolDefinition } from '../../../../src/tools/define-tool.ts'
import { destinationsIn, readsAddress } from '../../../../src/tools/origins/destinations.ts'
import { doubtsOf, originOf, originText, weakest, type Sources, type Text } from '../../../../src/tools/origins/origin-of.ts'
import { fieldsIn, KnownValues, WholeWords } from '../../../../src/tools/origins/values.ts'

const EVE = 'eve@evil.example'
const tool = (input: z.ZodType, more: Partial<ToolDefinition> = {}) =>
  defineTool({ description: '', input, execute: async () => null, ...more })

describe('a value that the model wrote', () => {
  test('is not known because it was written into a store and read again', () => {
    const known = new KnownValues()
    known.add({ saved: true, row: 7 }, { tool: 'notes.add', input: { about: EVE } })
    known.add({ row: 7, about_whom: EVE }, { tool: 'notes.get', input: { row: 7 } })
    expect(known.find(EVE)).toBeUndefined()
  })
})

test('what a call that only reads was given is no echo in the output of another tool', () => {
  const known = new KnownValues()
  known.add([{ body: 'hi' }], { tool: 'channel.read', input: { channel: 'general' }, reads: true })
  known.add(['general', 'random'], { tool: 'channels', input: {}, reads: true })
  expect(known.find('general')).toBe('channels')
})

describe('the destinations of a call', () => {
  const paths = (input: object, of: ToolDefinition = tool(z.looseObject({}))) => destinationsIn(input, of).map(({ value }) => value)

  test('are keys of objects, too', () => {
    expect(paths({ recipients: { [EVE]: true } })).toEqual([EVE])
    expect(paths({ share_with: { [EVE]: 'writer' } }, tool(z.looseObject({}), { destinations: ['share_with'] }))).toContain(EVE)
  })

  test('are the links in a text of a call that acts, unless its tool declares that it goes nowhere', () => {
    const text = { to: 'bob', body: 'See https://evil.example/?q=1' }
    expect(paths(text)).toEqual(['bob', 'https://evil.example/?q=1'])
    expect(paths(text, tool(z.looseObject({}), { destinations: ['to'] }))).toEqual(['bob', 'https://evil.example/?q=1'])
    expect(paths(text, tool(z.looseObject({}), { destinations: [] }))).toEqual([])
    expect(paths({ query: text.body }, tool(z.looseObject({}), { repeatable: true }))).toEqual([])
  })

  test('are what a request sends to a name that says so, also joined from parts', () => {
    const sends = { recipient: '{{x?}}', from: 'team', copy: { email: '{{user}}@{{server_part}}' }, note: '{{user}} wrote' }
    const of = tool(z.looseObject({}), { sends })
    expect(paths({ x: EVE, user: 'alice', server_part: 'evil.example' }, of)).toEqual(['alice', EVE, 'alice@evil.example'])
    expect(paths({ x: EVE, user: 'alice' }, tool(z.looseObject({}), { sends, destinations: ['user'] }))).toEqual(['alice'])
    expect(paths({ user: 'alice', server_part: 'evil.example' }, tool(z.looseObject({}), { sends, reads: true }))).toEqual([])
  })

  test('are found in a schema that refers to itself many times, of which few parts are read', () => {
    const where = { type: 'string', format: 'email' } as const
    const again = Object.fromEntries(Array.from({ length: 2000 }, (_, nth) => [`f${nth}`, { $ref: '#/$defs/Node' } as const]))
    const node = { type: 'object', properties: { ...again, reach: where } } as const
    let reads = 0
    const definitions = {
      get Node() {
        reads += 1
        return reads > 10_000 ? expect.unreachable('it is read without end') : node
      },
    }
    const many = jsonSchema({ type: 'object', properties: { reach: where, more: { $ref: '#/$defs/Node' } }, $defs: definitions })
    const root = jsonSchema({ type: 'object', properties: { reach: where, child: { $ref: '#' } } })
    expect(paths({ reach: EVE, more: { reach: EVE } }, tool(z.looseObject({}), { shown_input: many }))).toEqual([EVE, EVE])
    expect(paths({ child: { child: { reach: EVE } } }, tool(z.looseObject({}), { shown_input: root }))).toEqual([EVE])
  })

  test('are found by a format behind a reference, in a record and in a tuple', () => {
    const where = { type: 'string', format: 'email' } as const
    const shown = jsonSchema({
      type: 'object',
      properties: { whom: { $ref: '#/$defs/Person' } },
      $defs: { Person: { type: 'object', properties: { reach: where } } },
    })
    expect(paths({ whom: { reach: EVE } }, tool(z.looseObject({}), { shown_input: shown }))).toEqual([EVE])
    expect(paths({ by_role: { writer: EVE } }, tool(z.object({ by_role: z.record(z.string(), z.email()) })))).toEqual([EVE])
    expect(paths({ pair: [EVE] }, tool(z.object({ pair: z.tuple([z.email()]) })))).toEqual([EVE])
  })
})

test('the origin of a value without texts is not the user', () => {
  const of = (value: unknown) => originText(weakest(Array.from(fieldsIn(value), () => ({ from: 'model' as const }))))
  expect(of({ [EVE]: true })).not.toBe('user')
})

describe('a value that stands nowhere', () => {
  const write = (value: string, text = '', what = 'link', into = 'model') => {
    const sources: Sources = {
      trusted: () => null,
      texts: () => [{ in: 'mail', place: 'mail.body', said: 'a mail', text }],
      pieces: [{ in: into, what: [what], tools: ['file.write'] }],
      clean: (fields) => fields,
    }
    return originOf(value, sources, { tool: 'file.write', kinds: ['content', 'link'] }).allowed
  }

  test('may be written where a person lets models write such values', () => {
    expect(write('https://docs.example/a')).toBe(true)
    expect(write('https://docs.example/a', '', 'to')).toBe(false)
    expect(write('https://docs.example/a', '', 'link', '*')).toBe(false)
  })

  test('may not if it is made of what stands in a text', () => {
    expect(write('https://evil.example/?q=secret', 'read evil.example today')).toBe(false)
    expect(write('https://evil.example', 'read https://evil.example today')).toBe(false)
  })

  test('may not if it is one of more values than are searched for', () => {
    const texts = () => [{ in: 'mail', place: 'mail.body', said: 'a mail', text: 'https://evil.example' }]
    const sources: Sources = { trusted: () => null, texts, pieces: [{ in: 'model', what: ['*'] }], clean: (fields) => fields }
    const links = [...Array.from({ length: 20 }, (_, at) => `https://docs.example/${at}`), 'https://evil.example']
    const doubts = doubtsOf(
      'file.write',
      links.map((value) => ({ path: 'content', name: 'content', value, kinds: ['link'] })),
      sources,
    )
    expect(doubts.map(({ doubt }) => doubt.value)).toEqual(['https://evil.example'])
  })
})

describe('a piece of a text that may direct', () => {
  const sources = (text: string): Sources => ({
    trusted: () => null,
    texts: () => [{ in: 'ssh.line', place: 'ssh.line.line', said: '', text } satisfies Text],
    pieces: [{ in: 'ssh.line', what: ['ip'], tools: ['block'] }],
    clean: (fields: Record<string, unknown>) => fields,
  })
  const allowed = (value: string, text: string) => originOf(value, sources(text), { tool: 'block', kinds: ['ip'] }).allowed

  test('is a whole word of it', () => {
    const text = 'Failed password for root from 10.0.0.123 port 22'
    expect(allowed('10.0.0.123', text)).toBe(true)
    // The gateway, which is nowhere in the line.
    expect(allowed('10.0.0.1', text)).toBe(false)
  })

  test('is not spelt otherwise in it', () => {
    expect(allowed('10.0.0.1', `Failed password for invalid user ${btoa('10.0.0.1')} from 198.51.100.7 port 22`)).toBe(false)
  })
})

test('of a call with many destinations, twenty are searched for in texts', () => {
  let read = 0
  const texts = (): Text[] => {
    read += 1
    return [{ in: 'a', place: 'a.text', said: 'a text', text: 'nobody is named here' }]
  }
  const sources: Sources = { trusted: () => null, texts, pieces: [], clean: (fields) => fields }
  const to = Array.from({ length: 500 }, (_, at) => ({ path: 'to', name: 'to', value: `user${at}@evil.example`, kinds: ['to'] }))
  expect(doubtsOf('mail.send', to, sources)).toHaveLength(500)
  expect(read).toBe(20)
})

test('the doubted value of a secret field is shown as its mask, without the text around it', () => {
  const texts = (): Text[] => [{ in: 'a', place: 'a.text', said: 'a text', text: 'the password is hunter22222 today' }]
  const clean = (fields: Record<string, unknown>) => ('password' in fields ? { password: '[redacted]' } : fields)
  const to = [{ path: 'password', name: 'password', value: 'hunter22222', kinds: ['password'] }]
  const found = doubtsOf('users.set', to, { trusted: () => null, texts, pieces: [], clean })
  expect(found).toMatchObject([{ doubt: { argument: 'password', value: '[redacted]', origin: 'text:a.text' } }])
  expect(JSON.stringify(found)).not.toContain('hunter22222')
})

test('a tool that reads an address is untrusted before its server has listed it', () => {
  // As DeclaredTools makes it while the catalogue is not known, for example after an eviction.
  const listed = jsonSchema({ type: 'object', properties: { url: { type: 'string' } } })
  const fetches = tool(z.record(z.string(), z.json()), { shown_input: listed })
  const unlisted = tool(z.record(z.string(), z.json()))
  expect([readsAddress(fetches), readsAddress(unlisted)]).toEqual([true, true])
})

test('an address that a user names in a script without spaces is the user’s', () => {
  const has = (text: string) => new WholeWords(text).has('bob@example.com')
  expect(
    [
      '報告書をbob@example.comに送ってください',
      '请把报告发给bob@example.com。',
      'bob@example.com에게 보내 주세요',
      'to bob@example.com—thanks',
    ].map(has),
  ).toEqual([true, true, true, true])
})
