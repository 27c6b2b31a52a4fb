import { expect, test } from 'vitest'
import { shownName } from '../../../src/tools/define-tool.ts'

test('a model knows a tool by a name that providers take, and one that is too long by another name than its like', () => {
  expect(['act', 'http.a.b', 'mcp.x/y'].map(shownName)).toEqual(['act', 'http_a_b', 'mcp_x_y'])
  const long = ['a', 'b'].map((end) => shownName(`mcp.sky.${'x'.repeat(60)}${end}`))
  expect(long).toEqual(long.map(() => expect.stringMatching(/^mcp_sky_x{47}_[0-9a-f]{8}$/) as unknown))
  expect(new Set(long).size).toBe(2)
})
