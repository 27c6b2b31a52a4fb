import { describe, expect, test } from 'vitest'
import { anchorsOf } from '../../../src/skills/plan/compile.ts'
import { decide } from '../../../src/skills/gate/gate.ts'
import { anchorsTouched } from '../../../src/tools/define-tool.ts'
import { deployManifest } from '../skills/deploy-manifest.ts'
import { gateRequest } from '../skills/gate-request.ts'

const database = { name: 'the database', match: ['db-prod-*', 'orders'], tools: ['db.*'] }
const site = { name: 'the site', match: ['*://prod.example.com/*', '42'] }

describe('a call touches an anchor', () => {
  const touched = (tool: string, input: unknown) => anchorsTouched([database, site], { tool, input })

  test.each([
    ['if a value is one of its texts', { table: 'orders' }, ['the database']],
    ['if a value matches one of its patterns', { host: 'db-prod-1' }, ['the database']],
    ['if a value deep within the input does', { steps: [{ of: ['orders'] }] }, ['the database']],
    ['in capitals, with spaces around it or in another form of the same letters', { host: ' ＤＢ-Prod-1 ' }, ['the database']],
    ['if a number is its text', { account: 42 }, ['the site']],
    ['of each that matches', ['orders', 'https://prod.example.com/x'], ['the database', 'the site']],
    ['but not if only a part of a value is its text', { host: 'the db-prod-1', table: 'reorders' }, []],
    ['but not by the names of fields', { orders: true }, []],
    ['but not without a value', undefined, []],
  ])('%s', (_, input, names) => expect(touched('db.drop', input)).toEqual(names))

  test('only by a tool that it names, if it names some', () => {
    expect(touched('http.get', { table: 'orders', account: '42' })).toEqual(['the site'])
    expect(anchorsTouched(undefined, { tool: 'db.drop', input: 'orders' })).toEqual([])
  })
})

describe('the gate', () => {
  const { manifest, inputs, blackboard } = gateRequest()
  const deploys = (match: string[]) => anchorsOf([{ name: 'the app', match }], { manifest, inputs, blackboard })

  test('knows what the steps of a plan touch, from inputs, the blackboard and the text of the plan', () => {
    expect(deploys(['nothing'])).toEqual([])
    expect(deploys(['*payments-stg-webapp*'])).toEqual(['the app'])
  })

  test('asks a person for a run that touches an anchor, and allows it once approved', () => {
    const asked = decide(gateRequest({ manifest: deployManifest(), anchored: ['the app'] }))
    expect(asked).toMatchObject({ verdict: 'needs_approval', reason: 'policy: waits for a person: touches the anchor the app' })
    expect(decide(gateRequest({ anchored: ['the app'], approved: true }))).toMatchObject({ verdict: 'allow' })
  })

  test('does not ask for a run that it denies', () => {
    expect(decide(gateRequest({ anchored: ['the app'], roles: [] }))).toMatchObject({ verdict: 'deny' })
  })
})
