import { globSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { Option } from 'commander'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { verbsOf, type AnyOperation, type Resource } from '../../../src/contract/operation.ts'

const folder = path.resolve('src/contract/operations')
const files = [
  ...readdirSync(folder).map((file) => path.join(folder, file)),
  ...globSync(path.resolve('src/features/*/{operations/*,resources}.ts')),
]
const modules = await Promise.all(files.map((file) => import(file) as Promise<Record<string, unknown>>))
const exported = modules.flatMap((module) => Object.values(module).flat())
const isOperation = (value: unknown): value is AnyOperation => typeof value === 'object' && value !== null && 'at' in value
const operations = exported.filter(isOperation)

/** The fields of a query or a body; a body may be one of several shapes. */
function fieldsOf(schema: z.ZodType | undefined): string[] {
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => fieldsOf(option as z.ZodType))
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
}

describe.each(operations.flatMap((op) => (op.command ? [[op.id, op, op.command] as const] : [])))('the command of %s', (_, op, command) => {
  const names = Array.from(command.usage.matchAll(/[<[]([a-z-]+)/g), ([, name = '']) => name)
  const in_path = op.at.split('{').length - 1

  test('names each part of the path', () => {
    expect(names.length).toBeGreaterThanOrEqual(in_path)
    expect(Object.keys(op.params?.shape ?? {})).toHaveLength(in_path)
  })

  test.skipIf(command.asks)('has options and arguments that are fields of the request', () => {
    const flags = (command.flags ?? []).map(([text, , { field } = {}]) => field ?? new Option(text).name().replaceAll('-', '_'))
    const fields = new Set([...fieldsOf(op.query), ...fieldsOf(op.body)])
    expect([...names.slice(in_path), ...flags].filter((name) => !fields.has(name))).toEqual([])
  })

  const { most = 1000 } = command.table ?? { most: null }
  test.skipIf(most === null)('asks for the largest page that the route gives', () => {
    const largest = (limit: number) => op.query?.shape['limit']?.safeParse(limit).success
    expect([largest(most ?? 0), largest((most ?? 0) + 1)]).toEqual([true, false])
  })
})

test('each verb of a noun has a command', () => {
  const resources = exported.filter((value): value is Resource => typeof value === 'object' && value !== null && 'verbs' in value)
  expect(resources.length).toBeGreaterThan(0)
  for (const resource of resources) expect(verbsOf(resource).filter((op) => !op.command)).toEqual([])
})
