import { expect, test } from 'vitest'
import { schemaOf } from '../../../src/http/operations/schema-check.ts'

/** A database whose every statement fails with this. */
function failing(message: string): D1Database {
  const statement = { all: () => Promise.reject(new Error(message)) }
  return { prepare: () => statement, batch: () => Promise.reject(new Error(message)) } as unknown as D1Database
}

test('a database that does not answer says nothing of its tables, and one that lacks a table does', async () => {
  expect(await schemaOf(failing('D1 is overloaded'), [])).toEqual({ schema: 'unknown', error: null })
  expect(await schemaOf(failing('no such table: artifacts'), [])).toMatchObject({ schema: 'outdated', error: expect.any(String) })
})
