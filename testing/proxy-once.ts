/**
 * The test pool wraps the prototype of a class in another proxy for each new object, so that calls
 * read through as many proxies as objects existed: nine tenths of the time of these tests. Here the
 * class keeps its first proxy, as in later releases of the pool.
 */
const wrapped = new WeakSet()

globalThis.Proxy = new Proxy(Proxy, {
  construct(target, [object, handler]: [object, ProxyHandler<object>]) {
    if (wrapped.has(object)) return object
    const proxy = new target(object, handler)
    if (String(Reflect.get(handler, 'get')).includes('getUnknownPrototypeKey')) wrapped.add(proxy)
    return proxy
  },
})
