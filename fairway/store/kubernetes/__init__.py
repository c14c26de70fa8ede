"""The store on a real kube-apiserver: custom resources and native kinds, by `fairway.kubeapi`.

The server keeps, versions, validates and watches; what is left to do here is little. `store` turns
the interface's calls into requests, `watches` holds open watches, `writing` leaves out writes that
would change nothing and joins status writes that overtake each other, `shaping` makes texts of
lists and watches small.
"""
