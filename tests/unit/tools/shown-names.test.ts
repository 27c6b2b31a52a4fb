import { expect, test } from 'vitest'
import { shownNames } from '../../../src/tools/define-tool.ts'

test('a model knows each tool by a name that providers take, and no two by the same', () => {
  const long = `http.${'x'.repeat(59)}`
  expect(shownNames(['act', 'http.a.b', 'http.a_b', 'mcp.x/y', long, `${long}.z`])).toEqual([
    'act',
    'http_a_b',
    'http_a_b_2',
    'mcp_x_y',
    `http_${'x'.repeat(59)}`,
    `http_${'x'.repeat(55)}_2`,
  ])
})
