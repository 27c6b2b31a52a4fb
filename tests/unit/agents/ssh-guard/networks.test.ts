import { describe, expect, test } from 'vitest'
import { isPrivateNetwork } from '../../../../examples/agents/ssh-guard/block-tools.ts'
import { attackingNetworks } from '../../../../examples/agents/ssh-guard/addresses.ts'

describe('a network attacks', () => {
  test('where three of its addresses do, each counted once', () => {
    const two = ['198.51.100.4', '198.51.100.77', '198.51.100.4', '203.0.113.9']
    expect(attackingNetworks(two)).toEqual([])
    expect(attackingNetworks([...two, '198.51.100.140'])).toEqual([
      { network: '198.51.100.0/24', addresses: ['198.51.100.4', '198.51.100.77', '198.51.100.140'] },
    ])
  })

  test('by IPv4 alone: an IPv6 network is no neighbourhood', () => {
    expect(attackingNetworks(['2001:db8::1', '2001:db8::2', '::ffff:1.2.3.4', '::ffff:1.2.3.5', '::ffff:1.2.3.6'])).toEqual([])
  })
})

test('a network is private if its first address is; malformed ones are rejected', () => {
  expect([isPrivateNetwork('10.1.2.0/24'), isPrivateNetwork('203.0.113.0/24')]).toEqual([true, false])
  for (const none of ['203.0.113.0/16', '203.0.113.7/24', '203.0.113.0', ''])
    expect(() => isPrivateNetwork(none)).toThrow('is an IPv4 network')
})
