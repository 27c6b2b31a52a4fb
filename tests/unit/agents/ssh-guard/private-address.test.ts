import { describe, expect, it } from 'vitest'
import { isPrivateAddress } from '../../../../examples/agents/ssh-guard/addresses.ts'

const own = `127.0.0.1 127.255.255.254 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 0.0.0.0 100.64.0.1 100.127.255.255 224.0.0.1
  239.1.1.1 255.255.255.255 :: ::1 0:0:0:0:0:0:0:1 fc00::1 fd12:3456::1 fe80::1 febf::1 fec0::1 ff02::1 ::ffff:10.0.0.1 ::ffff:7f00:1
  ::FFFF:192.168.0.1 0:0:0:0:0:ffff:a00:1 ::127.0.0.1`
const others = `203.0.113.7 9.255.255.255 11.0.0.1 172.15.0.1 172.32.0.1 192.167.1.1 192.169.1.1 100.63.0.1 100.128.0.1 1.1.1.1 126.0.0.1 128.0.0.1
  223.255.255.255 2001:db8::1 2606:4700::1111 ::ffff:8.8.8.8 fbff::1`

describe('an address is private', () => {
  it.each(own.split(/\s+/))('%s', (address) => {
    expect(isPrivateAddress(address)).toBe(true)
  })
})

describe('an address is public', () => {
  it.each(others.split(/\s+/))('%s', (address) => {
    expect(isPrivateAddress(address)).toBe(false)
  })
})

it('a text that is not an address is refused', () => {
  expect(() => isPrivateAddress('a b')).toThrow(TypeError)
})
