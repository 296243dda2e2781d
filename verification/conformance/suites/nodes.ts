/** The variable of the environment that gives a client's tests the ports of the cluster's nodes, with commas. */
export const NODE_PORTS = 'CONFORMANCE_NODE_PORTS';
